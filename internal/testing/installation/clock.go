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
)

// readsClock is the line of Go's time.Now that asks the system; a release of Go that words it otherwise fails the build
// below rather than leave the clock right.
const readsClock = "\tsec, nsec, mono := runtimeNow()\n"

// BuildWithClock builds one of the programs, its source untouched, with a time.Now that is off by so much, a whole number
// of seconds, and returns the file. That is what the clock of a host does to a program: all that reads the wall clock is
// off, libraries included, and what measures (the monotonic clock, timers, deadlines) is not. libfaketime can't do it
// to a static Go program, and a time namespace moves the monotonic clock alone.
func BuildWithClock(t testing.TB, name string, off time.Duration) string {
	t.Helper()
	dir := t.TempDir()
	goroot, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	require.NoError(t, err)
	source := filepath.Join(strings.TrimSpace(string(goroot)), "src", "time", "time.go")
	text, err := os.ReadFile(source)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), readsClock), "%s does not read the clock in the way known", source)
	shifted := strings.Replace(string(text), readsClock, readsClock+fmt.Sprintf("\tsec += %d\n", int64(off/time.Second)), 1)
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{source: filepath.Join(dir, "time.go")}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "time.go"), []byte(shifted), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	return build(t, dir, name)
}

func build(t testing.TB, dir, name string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", file, "./cmd/"+name)
	cmd.Dir, cmd.Env = moduleRoot(t), append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "build %s with another clock:\n%s", name, out)
	return file
}

// Become ends a program as an operator would and starts another build of it in its place.
func (p *Program) Become(t testing.TB, file string) {
	t.Helper()
	require.NoError(t, p.Stop(), "%s", p.Log())
	p.file = file
	p.Start(t)
}
