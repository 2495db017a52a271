package servers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// RedisServer is a private redis-server: AOF with appendfsync everysec, noeviction, no snapshots, unless options say otherwise.
type RedisServer struct {
	*Server
	addr string
}

// RedisOption changes how a redis-server is started.
type RedisOption func(*redisSettings)

type redisSettings struct{ lines []string }

// WithRedisConf adds lines of redis.conf ("appendfsync always"); a later line wins over an earlier one and over the defaults.
func WithRedisConf(lines ...string) RedisOption {
	return func(s *redisSettings) { s.lines = append(s.lines, lines...) }
}

// Addr is the server's address, "127.0.0.1:port".
func (r *RedisServer) Addr() string { return r.addr }

// Redis starts a redis-server for one test (0.1 s) and stops it at cleanup.
func Redis(tb testing.TB, opts ...RedisOption) *RedisServer {
	tb.Helper()
	return forTest(tb, "redis", func(ctx context.Context, dir string) (*RedisServer, error) {
		return StartRedis(ctx, dir, opts...)
	})
}

// StartRedis runs a redis-server with its data and log in dir and returns when it answers. The caller stops it.
func StartRedis(ctx context.Context, dir string, opts ...RedisOption) (*RedisServer, error) {
	path, err := redisProgram()
	if err != nil {
		return nil, err
	}
	return retryPorts(func() (*RedisServer, error) {
		server, err := newRedis(path, dir, opts)
		if err != nil {
			return nil, fmt.Errorf("set up redis-server: %w", err)
		}
		if err := server.first(ctx); err != nil {
			return nil, fmt.Errorf("start redis-server: %w", err)
		}
		return server, nil
	})
}

func redisProgram() (string, error) {
	return program("redis-server", "/usr/bin/redis-server", "/usr/local/bin/redis-server", "/opt/homebrew/bin/redis-server")
}

func newRedis(path, dir string, opts []RedisOption) (*RedisServer, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	data, conf := filepath.Join(dir, "data"), filepath.Join(dir, "redis.conf")
	if err := os.WriteFile(conf, []byte(redisConf(port, data, opts)), 0o600); err != nil {
		return nil, err
	}
	server := &RedisServer{addr: loopback(port)}
	server.Server = &Server{
		name:    "redis-server",
		proc:    process{command: command{path: path, args: []string{conf}, dir: dir, log: filepath.Join(dir, "redis.log")}},
		timeout: 60 * time.Second,
		prepare: func(context.Context) error { return os.MkdirAll(data, 0o700) },
		wipe:    func() error { return os.RemoveAll(data) },
		ready:   func(ctx context.Context) error { return askRedis(ctx, server.addr, server.Pid()) },
	}
	return server, nil
}

func redisConf(port int, data string, opts []RedisOption) string {
	settings := redisSettings{lines: []string{
		"bind 127.0.0.1", fmt.Sprintf("port %d", port), "daemonize no", fmt.Sprintf("dir %q", data), `logfile ""`,
		"appendonly yes", "appendfsync everysec", `save ""`, "maxmemory-policy noeviction",
	}}
	for _, opt := range opts {
		opt(&settings)
	}
	return strings.Join(settings.lines, "\n") + "\n"
}

// askRedis checks that the server with that pid, and not another one on the port, has loaded its data.
func askRedis(ctx context.Context, addr string, pid int) error {
	if _, err := ask(ctx, addr, "PING"); err != nil {
		return err
	}
	info, err := askText(ctx, addr, "INFO", "server")
	if err != nil {
		return err
	}
	if !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", pid)) {
		return fmt.Errorf("another redis-server answers on %s", addr)
	}
	return nil
}
