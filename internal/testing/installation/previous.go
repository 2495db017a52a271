package installation

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Previous builds the programs of an earlier commit, for the length of a test, and returns their folder: of the commit
// named, else of the newest tag behind us, else of ten commits ago.
func Previous(t testing.TB, commit string) string {
	t.Helper()
	if commit == "" {
		commit = "HEAD~10"
		if tag, err := exec.CommandContext(t.Context(), "git", "describe", "--tags", "--abbrev=0", "HEAD~1").Output(); err == nil {
			commit = strings.TrimSpace(string(tag))
		}
	}
	tree, programs := t.TempDir(), t.TempDir()
	archive := exec.CommandContext(t.Context(), "bash", "-o", "pipefail", "-c", `git -C "$(git rev-parse --show-toplevel)" archive "$1" | tar -x -C "$2"`, "bash", commit, tree)
	out, err := archive.CombinedOutput()
	require.NoError(t, err, "%s", out)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", programs+"/", "./cmd/...")
	build.Dir, build.Env = tree, append(os.Environ(), "CGO_ENABLED=0")
	out, err = build.CombinedOutput()
	require.NoError(t, err, "build %s:\n%s", commit, out)
	t.Logf("the release before is %s", commit)
	return programs
}

// Use has the next start take the program of a folder; "" is our own again.
func (p *Program) Use(t testing.TB, folder string) {
	t.Helper()
	if folder == "" {
		folder = binaries(t)
	}
	p.file = filepath.Join(folder, p.name)
}
