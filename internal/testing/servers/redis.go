package servers

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisServer is a private redis-server: AOF with appendfsync everysec, noeviction, no snapshots,
// unless further lines of redis.conf say otherwise.
type RedisServer struct {
	*Server
	addr string
}

// Addr is the server's address, "127.0.0.1:port".
func (r *RedisServer) Addr() string { return r.addr }

// Redis starts a redis-server for one test (0.1 s) and stops it at cleanup. A line of conf
// ("appendfsync always") wins over an earlier one and over the defaults.
func Redis(tb testing.TB, conf ...string) *RedisServer {
	tb.Helper()
	return forTest(tb, "redis", func(ctx context.Context, dir string) (*RedisServer, error) {
		return StartRedis(ctx, dir, conf...)
	})
}

// StartRedis runs a redis-server with its data and log in dir and returns when it answers. The
// caller stops it.
func StartRedis(ctx context.Context, dir string, conf ...string) (*RedisServer, error) {
	return startRedis(ctx, dir, append(redisDefaults(), conf...))
}

func redisDefaults() []string {
	return []string{
		"appendonly yes", "appendfsync everysec", `save ""`, "maxmemory-policy noeviction",
	}
}

func startRedis(
	ctx context.Context, dir string, conf []string, args ...string,
) (*RedisServer, error) {
	return withProgram(ctx, "redis-server", func(path string) (*RedisServer, error) {
		return newRedis(path, dir, conf, args)
	})
}

func newRedis(path, dir string, lines, args []string) (*RedisServer, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	data, conf := filepath.Join(dir, "data"), filepath.Join(dir, "redis.conf")
	lines = append([]string{
		"bind 127.0.0.1", fmt.Sprintf("port %d", port), "daemonize no", fmt.Sprintf("dir %q", data),
		`logfile ""`,
	}, lines...)
	if err := os.WriteFile(conf, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return nil, err
	}
	server := &RedisServer{addr: loopback(port)}
	server.Server = &Server{
		name: "redis-server",
		proc: Process{
			Path: path, Args: append([]string{conf}, args...), Dir: dir,
			File: filepath.Join(dir, "redis.log"),
		},
		prepare: func(context.Context) error { return os.MkdirAll(data, 0o700) },
		data:    data,
		ready:   server.isReady,
	}
	return server, nil
}

// isReady checks that our server, and not another one on the port, has loaded its data.
func (r *RedisServer) isReady(ctx context.Context) error {
	if _, err := r.ask(ctx, "PING"); err != nil {
		return err
	}
	info, err := r.askText(ctx, "INFO", "server")
	if err == nil && !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", r.Pid())) {
		err = fmt.Errorf("another redis-server answers on %s", r.addr)
	}
	return err
}

// redisPatience bounds one command whose caller has set no closer deadline: a paused server never
// answers.
const redisPatience = 5 * time.Second

// ask sends one command over a connection of its own, without retries. Answers are string, int64,
// nil or []any of them, as RESP2 has them.
func (r *RedisServer) ask(ctx context.Context, command ...any) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, redisPatience)
	defer cancel()
	client := redis.NewClient(&redis.Options{
		Addr: r.addr, Protocol: 2, MaxRetries: -1, PoolSize: 1, DisableIdentity: true,
		ContextTimeoutEnabled: true,
	})
	defer client.Close() // nothing is lost with it
	answer, err := client.Do(ctx, command...).Result()
	if err != nil {
		return nil, fmt.Errorf("%v to %s: %w", command, r.addr, err)
	}
	return answer, nil
}

// askText is ask for an answer that is text.
func (r *RedisServer) askText(ctx context.Context, command ...any) (string, error) {
	answer, err := r.ask(ctx, command...)
	text, _ := answer.(string)
	return text, err
}

// run is ask where only the error counts.
func (r *RedisServer) run(ctx context.Context, command ...any) error {
	_, err := r.ask(ctx, command...)
	return err
}

// SentinelMaster is the name under which a test's sentinels know the master.
const SentinelMaster = "seckill"

// Sentinels is how many watch over a master; two of them decide.
const Sentinels = 3

// Sentinel starts one sentinel that watches a master for one test, and stops it at cleanup. It has
// yet to find the master's replicas and the other sentinels. A master that is silent for a second
// is down to it. A failover is bounded by 30 s: one whose votes were split is tried again after
// twice that, and a replica that follows its master over a proxy is not put right before.
func Sentinel(tb testing.TB, master *RedisServer) *RedisServer {
	tb.Helper()
	host, port, err := net.SplitHostPort(master.Addr())
	check(tb, err)
	conf := []string{
		fmt.Sprintf("sentinel monitor %s %s %s %d", SentinelMaster, host, port, Sentinels/2+1),
		"sentinel down-after-milliseconds " + SentinelMaster + " 1000",
		"sentinel failover-timeout " + SentinelMaster + " 30000",
	}
	return forTest(tb, "sentinel", func(ctx context.Context, dir string) (*RedisServer, error) {
		return startRedis(ctx, dir, conf, "--sentinel")
	})
}
