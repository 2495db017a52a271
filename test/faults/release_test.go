package faults

import (
	"cmp"
	"flag"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
)

var previousFlag = flag.String("faults.previous", "",
	"commit or tag to roll back to; if empty the newest tag behind HEAD, or ten commits ago, or the "+
		"oldest commit that can read this one's sales")

// storedPaths is the last commit whose paths are keys in Redis, and whose numbers have no path.
const storedPaths = "69cca6f"

func releaseFaults() []fault {
	return []fault{
		{name: "release-rolled-back", spread: 25 * time.Second, inject: rollBack},
		{
			name: "release-upgraded", spread: 25 * time.Second,
			prepare: func(t *testing.T, r *run) {
				r.replace(t, installation.Previous(t, storedPaths), r.Consumers, r.APIs)
				// The older consumers load the sale again, in their form.
				require.NoError(t, r.redis.FlushAll(t.Context()).Err())
			},
			inject: upgrade,
		},
	}
}

// upgrade replaces the programs of the release with stored paths, as docs/how-to/upgrade.md says:
// the consumers one at a time, and then all APIs at once. Buyers use the paths that they have.
func upgrade(t *testing.T, r *run) {
	for i, p := range r.Consumers {
		r.untilPromised(float64(i+1) / 8)
		r.replace(t, "", []*installation.Program{p})
	}
	r.untilPromised(0.5)
	r.replace(t, "", r.APIs)
}

// replace stops programs, and then starts those of a folder ("": of this release) in their place.
func (r *run) replace(t *testing.T, folder string, groups ...[]*installation.Program) {
	for _, programs := range groups {
		for _, p := range programs {
			require.NoError(t, p.Stop(), "%s", p.Log())
		}
		for _, p := range programs {
			p.SetBuild(t, folder)
			p.Start(t)
		}
	}
}

// readsNumbers is a line that each commit has whose programs read the sales of this one in Redis.
// Between releases, others read merchants' ids only as text.
const readsNumbers = "type merchantID string"

// oldestReader returns the oldest commit with that line. It returns "" if there is a tag, or the
// line ten commits ago: Previous has a default then.
func oldestReader(t *testing.T) string {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "git", args...).Output()
		return strings.TrimSpace(string(out)), err
	}
	first, err := git("log", "--format=%H", "--reverse", "-S", readsNumbers, "--",
		":/internal/redisstore/sale.go")
	require.NoError(t, err)
	first, _, _ = strings.Cut(first, "\n")
	if _, err := git("describe", "--tags", "--abbrev=0", "HEAD~1"); err == nil {
		return ""
	}
	if _, err := git("merge-base", "--is-ancestor", first, "HEAD~10"); err == nil {
		return ""
	}
	return first
}

// rollBack replaces all programs by those of the previous release, consumers first, on the
// migrated database, and then back again. Both releases run side by side in between.
func rollBack(t *testing.T, r *run) {
	previous := installation.Previous(t, cmp.Or(*previousFlag, oldestReader(t)))
	programs := slices.Concat(r.Consumers, r.APIs)
	for turn, folder := range []string{previous, ""} { // "" is this release
		for i, p := range programs {
			r.untilPromised(float64(turn)/2 + float64(i+1)/12)
			r.replace(t, folder, []*installation.Program{p})
		}
	}
}
