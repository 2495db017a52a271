package benchratelimit

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

const envoyRules = `domain: edge
descriptors:
  - key: user
    rate_limit: {unit: second, requests_per_unit: 1000}
`

// envoyRatelimit is the program envoyproxy/ratelimit, of the module in rls, with the same Redis.
// Its limit is a window of a second. It calls Redis for each decision, with two commands.
func envoyRatelimit(t *testing.T, client *redis.Client) peer {
	dir := t.TempDir()
	config := filepath.Join(dir, "ratelimit", "config")
	require.NoError(t, os.MkdirAll(config, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(config, "edge.yaml"), []byte(envoyRules), 0o600))
	program := filepath.Join(dir, "program")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program,
		"github.com/envoyproxy/ratelimit/src/service_cmd")
	build.Dir = "rls"
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	ports := [3]string{freePort(t), freePort(t), freePort(t)}
	log := must.Get(os.Create(filepath.Join(dir, "log")))(t)
	server := exec.Command(program)
	server.Stdout, server.Stderr = log, log
	server.Env = append(os.Environ(), "USE_STATSD=false", "LOG_LEVEL=error", "BACKEND_TYPE=redis",
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL="+client.Options().Addr,
		"REDIS_POOL_SIZE="+strconv.Itoa(callers), "RUNTIME_ROOT="+dir,
		"RUNTIME_SUBDIRECTORY=ratelimit", "HOST=127.0.0.1",
		"DEBUG_HOST=127.0.0.1", "GRPC_HOST=127.0.0.1", "PORT="+ports[0], "DEBUG_PORT="+ports[1],
		"GRPC_PORT="+ports[2])
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		_ = log.Close()
	})
	allow := askByGRPC(t, "127.0.0.1:"+ports[2])
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ok, err := allow(ctx)
		return ok && err == nil
	}, time.Minute, 100*time.Millisecond, "%s", log.Name())
	return peer{"envoyproxy/ratelimit over gRPC", allow, func() int64 {
		return commands(t, client)
	}}
}

var processed = regexp.MustCompile(`total_commands_processed:(\d+)`)

// commands is how many commands Redis has processed.
func commands(t *testing.T, client *redis.Client) int64 {
	info := must.Get(client.Info(context.Background(), "stats").Result())(t)
	found := processed.FindStringSubmatch(info)
	require.Len(t, found, 2, fmt.Sprint(info))
	return must.Get(strconv.ParseInt(found[1], 10, 64))(t)
}

func freePort(t *testing.T) string {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}
