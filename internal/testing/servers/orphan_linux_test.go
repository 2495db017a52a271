package servers_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// shortDir creates a directory for a test. t.TempDir is too long for the path of a Unix socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir := must.Get(os.MkdirTemp("", "seckill-test-"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestServers_DieWithATestBinaryThatIsKilled(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	doomed := exec.Command(os.Args[0])
	doomed.Env = append(os.Environ(), doomedDir+"="+dir)
	stdin := must.Get(doomed.StdinPipe())(t)
	defer func() { _ = stdin.Close() }()
	stdout := must.Get(doomed.StdoutPipe())(t)
	require.NoError(t, doomed.Start())
	said := make([]byte, 4096)
	n, _ := stdout.Read(said)
	require.Equal(t, "ready\n", string(said[:n]))
	// These are redis-server, mariadbd, mysqld, beam.smp and Erlang's helpers.
	require.GreaterOrEqual(t, len(processesIn(t, dir)), 5,
		"the search must find the running servers")

	require.NoError(t, doomed.Process.Kill())
	_ = doomed.Wait()
	requireNoneIn(t, dir)
}

func TestServers_LeaveNothingBehindInGoodOrder(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	rabbit := must.Get(servers.StartRabbitMQ(t.Context(), dir))(t)
	require.NotEmpty(t, processesIn(t, dir))
	require.NoError(t, rabbit.Stop())
	requireNoneIn(t, dir)
}

func requireNoneIn(t *testing.T, dir string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return len(processesIn(t, dir)) == 0
	}, time.Minute, 20*time.Millisecond,
		"left running: %v", processesIn(t, dir))
}

// processesIn lists the processes that run in dir or have a path in it as an argument. Servers and
// their helpers use their directory as working directory.
func processesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries := must.Get(filepath.Glob("/proc/[0-9]*"))(t)
	var found []string
	for _, entry := range entries {
		cwd, _ := os.Readlink(filepath.Join(entry, "cwd")) // the process may have ended
		line, _ := os.ReadFile(filepath.Join(entry, "cmdline"))
		if strings.HasPrefix(cwd, dir) || bytes.Contains(line, []byte(dir)) {
			found = append(found, entry+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return found
}
