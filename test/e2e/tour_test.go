package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/apicheck"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

// step is a command of the tour and its expected output.
type step struct {
	line          int
	command, want string
}

// steps reads the commands from the tour's console blocks.
func steps(t *testing.T, text string) []step {
	var all []step
	inside := false
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```console"
		case !inside:
		case strings.HasPrefix(line, "$ "):
			all = append(all, step{line: i + 1, command: line[2:]})
		default:
			require.NotEmpty(t, all, "line %d: output before any command", i+1)
			all[len(all)-1].want += line + "\n"
		}
	}
	return all
}

// pattern matches the output that a command may print.
func pattern(want string) *regexp.Regexp {
	return regexp.MustCompile(`\A` + strings.ReplaceAll(regexp.QuoteMeta(want), "…", `[^\n]*?`) +
		`\z`)
}

// shell is a bash or a zsh that executes one command at a time.
type shell struct {
	in    io.Writer
	lines chan string // closed at its end
}

const (
	endOfStep = "end of this step"
	patience  = 3 * time.Minute // for one step; go run compiles in some
)

func startShell(t *testing.T, program []string, env ...string) *shell {
	cmd := exec.CommandContext(t.Context(), program[0], program[1:]...)
	cmd.Dir, cmd.Env = filepath.Join("..", ".."), append(os.Environ(), env...)
	// A step that fails leaves programs in the background. They would keep the output open.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	cmd.Stderr = cmd.Stdout // error messages belong to the output
	require.NoError(t, cmd.Start())
	s := &shell{in: in, lines: make(chan string)}
	go func() {
		defer close(s.lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			s.lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		_ = in.Close()
		for range s.lines {
		}
		_ = cmd.Wait()
	})
	return s
}

// run executes a command and returns its output.
func (s *shell) run(t *testing.T, command string) string {
	t.Helper()
	must.Get(fmt.Fprintf(s.in, "%s\necho %q\n", command, endOfStep))(t)
	var got strings.Builder
	deadline := time.After(patience)
	for {
		select {
		case line, on := <-s.lines:
			require.True(t, on, "the shell ended; it had printed:\n%s", got.String())
			if line == endOfStep {
				return got.String()
			}
			got.WriteString(line + "\n")
		case <-deadline:
			t.Fatalf("the command did not end in %s; it had printed:\n%s", patience, got.String())
		}
	}
}

// TestTour_PrintsWhatItSays runs each line of docs/tutorial/tour.md that begins with "$ ". It runs
// them in order in one shell, with a real curl and a standalone of its own. The output must match
// the lines below the command; "…" matches anything within a line. The commands together make every
// call of the document.
func TestTour_PrintsWhatItSays(t *testing.T) {
	text := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "tutorial", "tour.md")))(t)
	all := steps(t, string(text))
	require.Greater(t, len(all), 60)
	for _, program := range shells() {
		t.Run(program[0], func(t *testing.T) {
			data := t.TempDir()
			standalone := installation.StartProgram(t, "standalone", "SECKILL_HTTP_ADDR", nil,
				"-data", data)
			calls, base := recordCalls(t, standalone.Addr)
			sh := startShell(t, program, "SECKILL_API="+base,
				"SECKILL_DATA="+data, "SECKILL_WAIT=4",
				"CGO_ENABLED=0", "GOFLAGS=-trimpath", "TZ=UTC", "LC_ALL=C.UTF-8")
			for _, s := range all {
				got := sh.run(t, s.command)
				// The file ends with a newline, and the shell's echo adds another.
				if strings.HasSuffix(got, "\n\n") {
					got = got[:len(got)-1]
				}
				require.Regexp(t, pattern(s.want), got, "docs/tutorial/tour.md:%d: %s", s.line,
					s.command)
			}
			require.Empty(t, calls.missing(), "calls that the tour does not make")
			t.Logf("%d commands", len(all))
		})
	}
}

// calls records which calls of the document passed a proxy.
type calls struct {
	document *apicheck.Document
	mu       sync.Mutex
	made     map[string]bool
}

// recordCalls starts a proxy before a server and returns the proxy's URL.
func recordCalls(t *testing.T, addr string) (*calls, string) {
	c := &calls{document: must.Get(apicheck.Load())(t), made: map[string]bool{}}
	target := &url.URL{Scheme: "http", Host: addr}
	next := &httputil.ReverseProxy{
		FlushInterval: -1, // a stream's events pass at once
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.made[c.document.OperationID(r.Method, r.URL.Path)] = true
		c.mu.Unlock()
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	return c, proxy.URL
}

// missing returns the operationIds of the document that no request had.
func (c *calls) missing() (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.document.Calls() {
		if !c.made[id] {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
