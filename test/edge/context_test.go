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
	for _, file := range append(files, root+"/go.mod", root+"/go.sum") {
		file = strings.TrimPrefix(file, root+"/")
		require.False(t, keptOut(strings.Split(string(ignored), "\n"), file),
			"%s is kept out by .dockerignore", file)
	}
	require.True(t, keptOut(strings.Split(string(ignored), "\n"), ".env"))
}

// keptOut applies .dockerignore's rules: the last line that matches a file, or one of its folders,
// decides.
func keptOut(lines []string, file string) bool {
	out := false
	for _, line := range lines {
		pattern, again := strings.CutPrefix(strings.TrimSpace(line), "!")
		if pattern == "" || strings.HasPrefix(pattern, "#") {
			continue
		}
		deep, anywhere := strings.CutPrefix(pattern, "**/")
		for at := file; at != "."; at = path.Dir(at) {
			hit, _ := path.Match(pattern, at)
			if anywhere {
				hit, _ = path.Match(deep, path.Base(at))
			}
			if hit {
				out = !again
			}
		}
	}
	return out
}
