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

// quickStart is the first command of README.md.
var quickStart = regexp.MustCompile("\n## Quick start\n[^`]*```sh\n(.*)\n```\n")

// TestREADME_QuickStartSellsExactlyItsUnits runs the command on another port, until the end. It has
// only words, which no shell treats in its own way.
func TestREADME_QuickStartSellsExactlyItsUnits(t *testing.T) {
	command := quickStart.FindStringSubmatch(readme(t))[1]
	require.Regexp(t, `^go run [-a-z ./]+/standalone -demo$`, command)
	out := inShell(t, shells()[0], command+" -exit -addr 127.0.0.1:0 -data "+t.TempDir())
	require.Contains(t, out, "PASS: 5000 buyers, 500 orders accepted, all 11 rules hold")
	require.Contains(t, out, "total 500 = available 0 + pending 0 + sold 500; "+
		"database: stock 0, active 500; balanced: true")
}

// curlBlock is the shell block below README.md's heading "Buy something with curl".
var curlBlock = regexp.MustCompile("(?s)\n## Buy something with curl\n.*?\n```sh\n(.*?)```\n")

// shells are the shells that a reader uses, started without their settings. scripts/services
// installs both.
func shells() [][]string { return [][]string{{"bash", "--norc"}, {"zsh", "-f"}} }

// TestREADME_CurlBlockBuysOneUnit gives README.md's lines to interactive shells, with a standalone
// of its own in place of the demo. An interactive shell treats history, comments and globs
// differently from a script.
func TestREADME_CurlBlockBuysOneUnit(t *testing.T) {
	found := curlBlock.FindStringSubmatch(readme(t))
	require.NotNil(t, found, "README.md has no such block")
	block := found[1]
	require.Equal(t, 1, strings.Count(block, "http://127.0.0.1:8080"))
	require.Equal(t, 1, strings.Count(block, "data/jwt-secret"))

	data := t.TempDir()
	standalone := installation.StartProgram(t, "standalone", "SECKILL_HTTP_ADDR", nil, "-data",
		data)
	block = strings.NewReplacer("http://127.0.0.1:8080", "http://"+standalone.Addr,
		"data/jwt-secret", filepath.Join(data, "jwt-secret")).Replace(block)
	for _, program := range shells() {
		t.Run(program[0], func(t *testing.T) {
			out := inShell(t, program, block+"\necho; echo \"order=$order\"")
			require.Regexp(t, `(?m)^order=[^\s"{}]+$`, out)
			require.Regexp(t, `"available":9,.*"balanced":true`, out)
		})
	}
}

func readme(t *testing.T) string { return string(must.Get(os.ReadFile("../../README.md"))(t)) }

// inShell gives commands to an interactive shell in the project's root. It returns what they print
// to standard output.
func inShell(t *testing.T, program []string, commands string) string {
	cmd := exec.CommandContext(t.Context(), program[0], append(program[1:], "-i")...)
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "HISTFILE=", "CGO_ENABLED=0",
		"GOFLAGS=-trimpath")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // else the shell takes the test's terminal
	cmd.Stdin = strings.NewReader(commands + "\nexit\n")
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	require.NoError(t, cmd.Run(), "%s\n%s", &out, &log)
	t.Log(log.String())
	return out.String()
}
