package installation

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// Program is one of the project's own programs, as a process of its own.
type Program struct {
	*servers.Process
	Addr string // where it answers /readyz

	name string
}

// built holds the programs of one test binary: they are built once.
var built = struct { //nolint:gochecknoglobals // a build costs seconds and does not change
	sync.Once
	dir string
	err error
}{}

// envPrograms names the directory of programs that are built already (scripts/test builds them once
// for all packages). Without it each test binary builds its own.
const envPrograms = "FLASHSALE_TEST_PROGRAMS"

// binaries builds all programs, statically as they are released, and returns their directory.
func binaries(t testing.TB) string {
	if dir := os.Getenv(envPrograms); dir != "" {
		return dir
	}
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "seckill-programs-"); built.err == nil {
			built.err = build("", "-o", built.dir+"/", "flashsale.dev/seckill/cmd/...")
		}
	})
	require.NoError(t, built.err)
	return built.dir
}

// build runs go build in a directory; "" is this one. A build is not cut short.
func build(dir string, args ...string) error {
	cmd := exec.Command("go", append([]string{"build"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %v: %w\n%s", args, err, out)
	}
	return nil
}

// Around runs the tests of a package between its servers and its programs: at the end the suite is
// closed and what was built is removed. It returns the exit code. It is what a TestMain calls.
func Around(m *testing.M, suite *servers.Suite) int {
	defer Clean()
	return suite.Around(m).Run()
}

// Clean removes what was built, for a TestMain that has no suite.
func Clean() {
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
}

// Run runs a program to its end, which must be a good one, and returns what it printed.
func Run(t testing.TB, name string, env []string, args ...string) string {
	out, err := Try(t, name, env, args...)
	require.NoError(t, err, "%s %v:\n%s", name, args, out)
	return out
}

// Try runs a program to its end and returns what it printed and how it ended.
func Try(t testing.TB, name string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(t.Context(), filepath.Join(binaries(t), name), args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// StartProgram starts a program on a free port, given in the setting named, and waits until it is
// ready.
func StartProgram(t testing.TB, name, addrSetting string, env []string, args ...string) *Program {
	return startProgramOn(t, "127.0.0.1", name, addrSetting, env, args...)
}

func startProgramOn(
	t testing.TB, host, name, addrSetting string, env []string, args ...string,
) *Program {
	addr := freePort(t, host)
	env = append(append(os.Environ(), env...), addrSetting+"="+addr)
	if setting(env, opsAddr) == "" {
		env = append(env, opsAddr+"="+freePort(t, "127.0.0.1"))
	}
	p := &Program{name: name, Addr: addr, Process: &servers.Process{
		Path: filepath.Join(binaries(t), name), Args: args, Env: env,
		File: filepath.Join(t.TempDir(), "log"),
	}}
	t.Cleanup(func() {
		_ = p.Kill()
		if t.Failed() {
			t.Logf("the end of %s's log:\n%s", name, p.Log())
		}
	})
	p.Start(t)
	return p
}

// Start starts it (again) and waits until it is ready.
func (p *Program) Start(t testing.TB) {
	p.Launch(t)
	client := http.Client{Timeout: time.Second}
	require.Eventually(t, func() bool {
		resp, err := client.Get("http://" + p.Addr + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, time.Minute, 10*time.Millisecond, "%s is not ready:\n%s", p.name, p.Process)
}

// Launch starts it and does not wait.
func (p *Program) Launch(t testing.TB) {
	require.NoError(t, p.Process.Start())
}

// Become ends a program as an operator would and starts another build of it in its place.
func (p *Program) Become(t testing.TB, file string) {
	require.NoError(t, p.Stop(), "%s", p.Log())
	p.Path = file
	p.Start(t)
}

// Use has the next start take the program of a folder; "" is our own again.
func (p *Program) Use(t testing.TB, folder string) {
	if folder == "" {
		folder = binaries(t)
	}
	p.Path = filepath.Join(folder, p.name)
}

// opsAddr is the setting that says where a program answers /metrics and /debug/pprof.
const opsAddr = "SECKILL_OPS_ADDR"

// OpsAddr is where it answers /metrics and /debug/pprof.
func (p *Program) OpsAddr() string { return setting(p.Env, opsAddr) }

// Log is the end of what it wrote.
func (p *Program) Log() string { return p.String() }

// Wrote counts the lines of its log, of the last megabyte, that have all these words.
func (p *Program) Wrote(words ...string) (lines int) {
	for line := range strings.Lines(p.LogTail(1 << 20)) {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			lines++
		}
	}
	return lines
}

// firstHost is the last number of the first API's loopback address, where each has one of its own.
const firstHost = 11

// JoinAPI starts one more API beside those that are there, and returns it when it is ready.
func (r *Installation) JoinAPI(t testing.TB) *Program {
	host := "127.0.0.1"
	if r.hosts {
		host = fmt.Sprintf("127.0.0.%d", firstHost+len(r.APIs))
	}
	r.APIs = append(r.APIs, startProgramOn(t, host, "api", "SECKILL_HTTP_ADDR", r.apiEnv))
	return r.APIs[len(r.APIs)-1]
}

// JoinConsumer starts one more consumer beside those that are there, and returns it when it is
// ready.
func (r *Installation) JoinConsumer(t testing.TB) *Program {
	r.Consumers = append(r.Consumers, StartProgram(t, "order-consumer", opsAddr, r.consumerEnv))
	return r.Consumers[len(r.Consumers)-1]
}

// freePort finds an address that was free a moment ago.
func freePort(t testing.TB, host string) string {
	l := must.Get(net.Listen("tcp", net.JoinHostPort(host, "0")))(t)
	defer l.Close()
	return l.Addr().String()
}

// setting finds NAME in an environment, "" where it is not set.
func setting(env []string, name string) string {
	for _, pair := range env {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}
