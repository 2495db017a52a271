package faults

import (
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
)

var previousFlag = flag.String("faults.previous", "",
	"commit or tag to roll back to; if empty the newest tag behind HEAD, or ten commits ago")

// storedPaths is the last commit whose paths are keys in Redis, and whose numbers have no path.
const storedPaths = "69cca6f"

func releaseFaults() []fault {
	return []fault{
		{name: "release-rolled-back", spread: 25 * time.Second, inject: rollBack},
		{
			name: "release-upgraded", spread: 25 * time.Second,
			prepare: func(t *testing.T, r *run) {
				r.replace(t, installation.Previous(t, storedPaths), r.Consumers, r.APIs)
			},
			inject: upgrade,
		},
	}
}

// upgrade replaces the programs of the release with stored paths, as docs/how-to/upgrade.md says:
// the consumers one at a time, and then all APIs at once. Buyers use the paths that they have.
func upgrade(t *testing.T, r *run) {
	for i, p := range r.Consumers {
		r.untilSold(float64(i+1) / 8)
		r.replace(t, "", []*installation.Program{p})
	}
	r.untilSold(0.5)
	r.replace(t, "", r.APIs)
}

// replace stops programs, and then starts those of a folder ("": of this release) in their place.
func (r *run) replace(t *testing.T, folder string, groups ...[]*installation.Program) {
	for _, programs := range groups {
		for _, p := range programs {
			require.NoError(t, p.Stop(), "%s", p.Log())
		}
		for _, p := range programs {
			p.Use(t, folder)
			p.Start(t)
		}
	}
}

// rollBack replaces all programs by those of the previous release, consumers first, on the
// migrated database, and then back again. Both releases run side by side in between.
func rollBack(t *testing.T, r *run) {
	previous := installation.Previous(t, *previousFlag)
	programs := slices.Concat(r.Consumers, r.APIs)
	for turn, folder := range []string{previous, ""} { // "" is this release
		for i, p := range programs {
			r.untilSold(float64(turn)/2 + float64(i+1)/12)
			r.replace(t, folder, []*installation.Program{p})
		}
	}
}
