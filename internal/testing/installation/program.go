package installation

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// Program is one of the project's own programs as a separate process.
type Program struct {
	*servers.Process
	Addr string // address of /readyz

	name string
}

// built holds the programs of one test binary, which builds them one time.
var built = struct { //nolint:gochecknoglobals // a build costs seconds and does not change
	sync.Once
	dir string
	err error
}{}

// envPrograms names a directory with built programs. scripts/test builds them one time for all
// packages. Without it each test binary builds its own.
const envPrograms = "FLASHSALE_TEST_PROGRAMS"

// binaries builds all programs statically, as in a release, and returns their directory.
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

// build runs go build in a directory; "" is the current one. The test's context does not cancel it.
func build(dir string, args ...string) error {
	cmd := exec.Command("go", append([]string{"build"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %v: %w\n%s", args, err, out)
	}
	return nil
}

// Around runs a package's tests for its TestMain and returns the exit code. At the end it closes
// the suite and deletes the built programs.
func Around(m *testing.M, suite *servers.Suite) int {
	defer Clean()
	return suite.Around(m).Run()
}

// Clean deletes the built programs, for a TestMain without a suite.
func Clean() {
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
}

// Run runs a program, which must succeed, and returns its output.
func Run(t testing.TB, name string, env []string, args ...string) string {
	out, err := Try(t, name, env, args...)
	require.NoError(t, err, "%s %v:\n%s", name, args, out)
	return out
}

// Try runs a program and returns its output and its result.
func Try(t testing.TB, name string, env []string, args ...string) (string, error) {
	return tryFile(t, programFile(t, "", name), env, args...)
}

func tryFile(t testing.TB, file string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(t.Context(), file, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// StartProgram starts a program and waits until it is ready. addrSetting names the setting of the
// address that serves /readyz; without it in env the program gets a free port.
func StartProgram(t testing.TB, name, addrSetting string, env []string, args ...string) *Program {
	return startProgramOn(t, "127.0.0.1", programFile(t, "", name), addrSetting, env, args...)
}

func startProgramOn(
	t testing.TB, host, file, addrSetting string, env []string, args ...string,
) *Program {
	name := filepath.Base(file)
	addr := setting(env, addrSetting)
	if addr == "" {
		addr = servers.FreeAddr(t, host)
	}
	env = append(append(os.Environ(), env...), addrSetting+"="+addr)
	if setting(env, opsAddr) == "" {
		env = append(env, opsAddr+"="+servers.FreeAddr(t, "127.0.0.1"))
	}
	p := &Program{name: name, Addr: addr, Process: &servers.Process{
		Path: file, Args: args, Env: env,
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

// Start starts the program (again) and waits until it is ready.
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

// Launch starts the program without a wait.
func (p *Program) Launch(t testing.TB) {
	require.NoError(t, p.Process.Start())
}

// RestartAs stops a program with SIGTERM and starts another build of it, an executable file.
func (p *Program) RestartAs(t testing.TB, file string) {
	require.NoError(t, p.Stop(), "%s", p.Log())
	p.Path = file
	p.Start(t)
}

// SetBuild makes the next start run the program of a folder; "" is this commit's build.
func (p *Program) SetBuild(t testing.TB, folder string) { p.Path = programFile(t, folder, p.name) }

func programFile(t testing.TB, folder, name string) string {
	if folder == "" {
		folder = binaries(t)
	}
	return filepath.Join(folder, name)
}

// opsAddr is the setting for the address of /metrics and /debug/pprof.
const opsAddr = "SECKILL_OPS_ADDR"

// OpsAddr returns the address of /metrics and /debug/pprof.
func (p *Program) OpsAddr() string { return setting(p.Env, opsAddr) }

// Metrics returns the program's metrics.
func (p *Program) Metrics(t testing.TB) string {
	resp, err := http.Get("http://" + p.OpsAddr() + "/metrics")
	require.NoError(t, err)
	defer resp.Body.Close()
	return string(must.Get(io.ReadAll(resp.Body))(t))
}

// Metric returns the value of a series, or 0 if there is none.
func (p *Program) Metric(t testing.TB, series string) float64 {
	_, rest, found := strings.Cut(p.Metrics(t), "\n"+series+" ")
	if !found {
		return 0
	}
	number, _, _ := strings.Cut(rest, "\n")
	return must.Get(strconv.ParseFloat(number, 64))(t)
}

// Memory reads a field of /proc/PID/status in MB: VmRSS is the memory now, VmHWM its peak.
func (p *Program) Memory(t testing.TB, field string) float64 {
	status := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid())))(t)
	_, after, found := strings.Cut(string(status), field+":")
	require.True(t, found)
	return must.Get(strconv.ParseFloat(strings.Fields(after)[0], 64))(t) * 1024 / 1e6
}

// Log returns the end of the program's log.
func (p *Program) Log() string { return p.String() }

// CountLogLines counts the lines of the log that contain all words.
func (p *Program) CountLogLines(words ...string) (lines int) {
	for line := range strings.Lines(p.LogTail(1 << 30)) {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			lines++
		}
	}
	return lines
}

// firstHost is the last byte of the first API's loopback address, if each API has its own address.
const firstHost = 11

// JoinAPI starts one more API and returns it when it is ready.
func (r *Installation) JoinAPI(t testing.TB) *Program {
	host := "127.0.0.1"
	if r.hosts {
		host = fmt.Sprintf("127.0.0.%d", firstHost+len(r.APIs))
	}
	r.APIs = append(r.APIs, startProgramOn(t, host, programFile(t, r.programs, "api"),
		"SECKILL_HTTP_ADDR", r.apiEnv))
	return r.APIs[len(r.APIs)-1]
}

// JoinConsumer starts one more consumer and returns it when it is ready.
func (r *Installation) JoinConsumer(t testing.TB) *Program {
	r.Consumers = append(r.Consumers, startProgramOn(t, "127.0.0.1",
		programFile(t, r.programs, "order-consumer"), opsAddr, r.consumerEnv))
	return r.Consumers[len(r.Consumers)-1]
}

// setting returns the value of NAME in an environment, or "".
func setting(env []string, name string) string {
	for _, pair := range env {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}
