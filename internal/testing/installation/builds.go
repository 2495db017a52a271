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

// readsClock is the line of Go's time.Now that asks the system; a release of Go that words it
// otherwise fails the build below rather than leave the clock right.
const readsClock = "\tsec, nsec, mono := runtimeNow()\n"

// BuildWithClock builds one of the programs, its source untouched, with a time.Now that is off by
// so much, a whole number of seconds, and returns the file. That is what the clock of a host does
// to a program: all that reads the wall clock is off, libraries included, and what measures (the
// monotonic clock, timers, deadlines) is not. libfaketime can't do it to a static Go program, and a
// time namespace moves the monotonic clock alone.
func BuildWithClock(t testing.TB, name string, off time.Duration) string {
	dir := t.TempDir()
	in := func(file string) string { return filepath.Join(dir, file) }
	goroot := must.Get(exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output())(t)
	source := filepath.Join(strings.TrimSpace(string(goroot)), "src", "time", "time.go")
	text := must.Get(os.ReadFile(source))(t)
	require.Equal(t, 1, strings.Count(string(text), readsClock),
		"%s does not read the clock in the way known", source)
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

// Previous builds the programs of an earlier commit, for the length of a test, and returns their
// folder: of the commit named, else of the newest tag behind us, else of ten commits ago.
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
