package installation

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/servers"
)

// Program is one of the project's own programs, as a process of its own.
type Program struct {
	Addr string // where it answers /readyz

	name, file string
	args, env  []string
	log        *logFile
	cmd        *exec.Cmd
	ended      chan error
}

// built holds the programs of one test binary: they are built once.
var built = struct { //nolint:gochecknoglobals // building costs seconds, and the result does not change
	sync.Once
	dir string
	err error
}{}

// envPrograms names the directory of programs that are built already (scripts/test builds them once
// for all packages). Without it each test binary builds its own.
const envPrograms = "SECKILL_TEST_PROGRAMS"

// binaries builds all programs, statically as they are released, and returns their directory.
func binaries(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv(envPrograms); dir != "" {
		return dir
	}
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "seckill-programs-"); built.err != nil {
			return
		}
		build := exec.Command("go", "build", "-o", built.dir+"/", "./cmd/...") // a build is not cut short
		build.Dir, build.Env = moduleRoot(t), append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("build the programs: %w\n%s", err, out)
		}
	})
	require.NoError(t, built.err)
	return built.dir
}

// Around runs the tests of a package between its servers and its programs: at the end the suite is closed and what was built is
// removed. It returns the exit code. It is what a TestMain calls.
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
	t.Helper()
	out, err := Try(t, name, env, args...)
	require.NoError(t, err, "%s %v:\n%s", name, args, out)
	return out
}

// Try runs a program to its end and returns what it printed and how it ended.
func Try(t testing.TB, name string, env []string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(binaries(t), name), args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// StartProgram starts a program on a free port, given in the setting named, and waits until it is ready.
func StartProgram(t testing.TB, name, addrSetting string, env []string, args ...string) *Program {
	t.Helper()
	return startProgramOn(t, freePort(t), name, addrSetting, env, args...)
}

func startProgramOn(t testing.TB, addr, name, addrSetting string, env []string, args ...string) *Program {
	t.Helper()
	p := &Program{name: name, file: filepath.Join(binaries(t), name), args: args, Addr: addr, log: &logFile{}}
	p.env = append(append(os.Environ(), env...), addrSetting+"="+p.Addr)
	if _, ok := setting(p.env, "SECKILL_OPS_ADDR"); !ok {
		p.env = append(p.env, "SECKILL_OPS_ADDR="+freePort(t))
	}
	p.Start(t)
	t.Cleanup(func() {
		_ = p.Kill()
		if t.Failed() {
			t.Logf("the end of %s's log:\n%s", name, p.Log())
		}
	})
	return p
}

// Start starts it (again) and waits until it is ready.
func (p *Program) Start(t testing.TB) {
	t.Helper()
	p.Launch(t)
	require.Eventually(t, func() bool { return p.ready() }, time.Minute, 10*time.Millisecond, "%s is not ready:\n%s", p.name, p.log)
}

// Launch starts it and does not wait.
func (p *Program) Launch(t testing.TB) {
	t.Helper()
	p.cmd = exec.Command(p.file, p.args...) // it lives until it is killed
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = p.env, p.log, p.log
	p.cmd.SysProcAttr = dieWithTests()
	require.NoError(t, p.cmd.Start())
	p.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan<- error) { ended <- cmd.Wait(); close(ended) }(p.cmd, p.ended)
}

func (p *Program) ready() bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Addr+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// Kill ends it at once, as a power cut would.
func (p *Program) Kill() error {
	err := p.cmd.Process.Kill()
	<-p.ended //nolint:errcheck // "killed" is what was asked for
	return err
}

// Stop asks it to end (SIGTERM) and returns how it did.
func (p *Program) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return <-p.ended
}

// Pause and Resume stop it in its tracks and let it go on.
func (p *Program) Pause() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets a paused program go on.
func (p *Program) Resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// Pid is its process, for reading its resource usage.
func (p *Program) Pid() int { return p.cmd.Process.Pid }

// OpsAddr is where it answers /metrics and /debug/pprof.
func (p *Program) OpsAddr() string {
	addr, _ := setting(p.env, "SECKILL_OPS_ADDR")
	return addr
}
