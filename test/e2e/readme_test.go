package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

// curlBlock is the shell block below README.md's heading "Buy something with curl".
var curlBlock = regexp.MustCompile("(?s)\n## Buy something with curl\n.*?\n```sh\n(.*?)```\n")

// shells are the shells that a reader uses, started without their settings. CI installs both
// (scripts/services).
func shells() [][]string {
	all := [][]string{{"bash", "--norc"}}
	if _, err := exec.LookPath("zsh"); err == nil {
		all = append(all, []string{"zsh", "-f"})
	}
	return all
}

// TestREADME_CurlBlockBuysOneUnit gives README.md's lines to interactive shells, with a standalone
// of its own in place of the demo. An interactive shell treats history, comments and globs
// differently from a script.
func TestREADME_CurlBlockBuysOneUnit(t *testing.T) {
	root := filepath.Join("..", "..")
	text := must.Get(os.ReadFile(filepath.Join(root, "README.md")))(t)
	found := curlBlock.FindSubmatch(text)
	require.NotNil(t, found, "README.md has no such block")
	block := string(found[1])
	require.Equal(t, 1, strings.Count(block, "http://127.0.0.1:8080"))
	require.Equal(t, 1, strings.Count(block, "data/jwt-secret"))

	data := t.TempDir()
	standalone := installation.StartProgram(t, "standalone", "SECKILL_HTTP_ADDR", nil, "-data",
		data)
	block = strings.NewReplacer("http://127.0.0.1:8080", "http://"+standalone.Addr,
		"data/jwt-secret", filepath.Join(data, "jwt-secret")).Replace(block)
	for _, program := range shells() {
		t.Run(program[0], func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), program[0], append(program[1:], "-i")...)
			cmd.Dir, cmd.Env = root, append(os.Environ(), "HISTFILE=",
				"CGO_ENABLED=0", "GOFLAGS=-trimpath")
			// Setsid keeps the shell from taking the test's terminal.
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			cmd.Stdin = strings.NewReader(block + "\necho; echo \"order=$order\"\nexit\n")
			var out, log bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &log
			require.NoError(t, cmd.Run(), "%s\n%s", &out, &log)
			require.Regexp(t, `(?m)^order=[^\s"{}]+$`, out.String(), log.String())
			require.Regexp(t, `"available":9,.*"balanced":true`, out.String(), log.String())
		})
	}
}
