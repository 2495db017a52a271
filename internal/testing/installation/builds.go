package installation

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

// readsClock is the line of Go's time.Now that reads the system clock. If a Go release changes this
// line, the build below fails instead of using the right time.
const readsClock = "\tsec, nsec, mono := runtimeNow()\n"

// BuildWithClock builds one of the programs with an offset in time.Now and returns the file. off is
// a whole number of seconds. The program's source is unchanged. A wrong host clock has the same
// effect: all readers of the wall clock are off, libraries included. Measurements are right (the
// monotonic clock, timers, deadlines). libfaketime does not work with a static Go program, and a
// time namespace moves only the monotonic clock.
func BuildWithClock(t testing.TB, name string, off time.Duration) string {
	dir := t.TempDir()
	in := func(file string) string { return filepath.Join(dir, file) }
	goroot := must.Get(exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output())(t)
	source := filepath.Join(strings.TrimSpace(string(goroot)), "src", "time", "time.go")
	text := must.Get(os.ReadFile(source))(t)
	require.Equal(t, 1, strings.Count(string(text), readsClock),
		"%s reads the clock differently than readsClock expects", source)
	shifted := strings.Replace(string(text), readsClock,
		readsClock+fmt.Sprintf("\tsec += %d\n", int64(off/time.Second)), 1)
	replace := map[string]string{source: in("time.go")}
	overlay := must.Get(json.Marshal(map[string]any{"Replace": replace}))(t)
	require.NoError(t, os.WriteFile(in("time.go"), []byte(shifted), 0o600))
	require.NoError(t, os.WriteFile(in("overlay.json"), overlay, 0o600))
	require.NoError(t, build("", "-overlay", in("overlay.json"), "-o", in(name),
		"flashsale.dev/seckill/cmd/"+name))
	return in(name)
}

// Previous builds the programs of an earlier commit for one test and returns their folder. It uses
// the given commit, else the newest tag before HEAD, else HEAD~10.
func Previous(t testing.TB, commit string) string {
	if commit == "" {
		commit = "HEAD~10"
		tag, err := exec.CommandContext(t.Context(), "git", "describe", "--tags", "--abbrev=0",
			"HEAD~1").Output()
		if err == nil {
			commit = strings.TrimSpace(string(tag))
		}
	}
	tree, programs := t.TempDir(), t.TempDir()
	out, err := exec.CommandContext(t.Context(), "bash", "-o", "pipefail", "-c",
		`git -C "$(git rev-parse --show-toplevel)" archive "$1" | tar -x -C "$2"`,
		"bash", commit, tree).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, build(tree, "-o", programs+"/", "./cmd/..."))
	t.Logf("the release before is %s", commit)
	return programs
}
