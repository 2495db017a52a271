package servers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisServer is a private redis-server: AOF with appendfsync everysec, noeviction, no snapshots.
// Further lines of redis.conf may override this.
type RedisServer struct {
	*Server
	addr string
}

// Addr returns the server's address, "127.0.0.1:port".
func (r *RedisServer) Addr() string { return r.addr }

// Redis starts a redis-server for one test (0.1 s) and stops it at cleanup. A line of conf
// ("appendfsync always") overrides earlier lines and the defaults.
func Redis(tb testing.TB, conf ...string) *RedisServer {
	tb.Helper()
	return forTest(tb, "redis", func(ctx context.Context, dir string) (*RedisServer, error) {
		return StartRedis(ctx, dir, conf...)
	})
}

// StartRedis runs a redis-server with its data and log in dir. It returns when the server answers.
// The caller stops it.
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

// isReady checks that this server has loaded its data. It detects another server on the same port.
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

// redisPatience limits one command without an earlier deadline, because a paused server never
// answers.
const redisPatience = 5 * time.Second

// ask sends one command over a new connection without retries. Answers are string, int64, nil or
// []any of them, as in RESP2.
func (r *RedisServer) ask(ctx context.Context, command ...any) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, redisPatience)
	defer cancel()
	client := redis.NewClient(&redis.Options{
		Addr: r.addr, Protocol: 2, MaxRetries: -1, PoolSize: 1, DisableIdentity: true,
		ContextTimeoutEnabled: true,
	})
	defer client.Close() // a close error loses no data
	answer, err := client.Do(ctx, command...).Result()
	if err != nil {
		return nil, fmt.Errorf("%v to %s: %w", command, r.addr, err)
	}
	return answer, nil
}

// askText returns ask's answer as text.
func (r *RedisServer) askText(ctx context.Context, command ...any) (string, error) {
	answer, err := r.ask(ctx, command...)
	text, _ := answer.(string)
	return text, err
}

// run works as ask without the answer.
func (r *RedisServer) run(ctx context.Context, command ...any) error {
	_, err := r.ask(ctx, command...)
	return err
}

// SentinelMaster is the master's name in the tests' sentinels.
const SentinelMaster = "seckill"

// Sentinels is the number of sentinels of a master. The quorum is two.
const Sentinels = 3

// Sentinel starts one sentinel of a master for one test, and stops it at cleanup. The sentinel
// still has to discover the master's replicas and the other sentinels. It marks a master as down
// after one silent second. The failover timeout is 30 s. After a split vote Sentinel retries after
// twice that time. Sentinel also waits that long before it reconfigures a replica that follows its
// master over a proxy.
func Sentinel(tb testing.TB, master *RedisServer) *RedisServer {
	tb.Helper()
	host, port, _ := strings.Cut(master.Addr(), ":")
	conf := []string{
		fmt.Sprintf("sentinel monitor %s %s %s %d", SentinelMaster, host, port, Sentinels/2+1),
		"sentinel down-after-milliseconds " + SentinelMaster + " 1000",
		"sentinel failover-timeout " + SentinelMaster + " 30000",
	}
	return forTest(tb, "sentinel", func(ctx context.Context, dir string) (*RedisServer, error) {
		return startRedis(ctx, dir, conf, "--sentinel")
	})
}
