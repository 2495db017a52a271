package edge

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

// TestImage_IsBuiltFromAllItNeeds compares .dockerignore with the files that the programs are built
// from. Otherwise only an image build would find that a file is excluded.
func TestImage_IsBuiltFromAllItNeeds(t *testing.T) {
	root := must.Get(filepath.Abs("../.."))(t)
	ignored := must.Get(os.ReadFile(filepath.Join(root, ".dockerignore")))(t)
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f",
		`{{if .Module}}{{if .Module.Main}}{{$d := .Dir}}
			{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}
			{{range .EmbedFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`, "./cmd/...")
	list.Dir = root
	out := must.Get(list.Output())(t)
	files := strings.Fields(string(out))
	require.Greater(t, len(files), 100)
	require.True(t, keptOut(".env", string(ignored)))
	require.NotRegexp(t, `(?m)^(!|[^*#\n][^\n]*/.)`, string(ignored), "keptOut does not know it")
	for _, file := range append(files, root+"/go.mod", root+"/go.sum") {
		file = strings.TrimPrefix(file, root+"/")
		require.False(t, keptOut(file, string(ignored)), "%s is kept out by .dockerignore", file)
	}
}

// keptOut reports whether a line of .dockerignore excludes a file. The lines name top-level
// entries, or with **/ files anywhere.
func keptOut(file, ignored string) bool {
	for pattern := range strings.Lines(ignored) {
		pattern, anywhere := strings.CutPrefix(strings.TrimSpace(pattern), "**/")
		name, _, _ := strings.Cut(file, "/")
		if anywhere {
			name = path.Base(file)
		}
		if hit, _ := path.Match(pattern, name); hit {
			return true
		}
	}
	return false
}
