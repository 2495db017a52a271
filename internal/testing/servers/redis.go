package servers

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
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

// askRedis says nil when the server with that pid, and not another that was quicker to the port, has loaded its data.
func askRedis(ctx context.Context, addr string, pid int) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close() // nothing is lost with it
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := io.WriteString(conn, "PING\r\nINFO server\r\n"); err != nil {
		return err
	}
	return expectRedis(bufio.NewReader(conn), fmt.Sprintf("process_id:%d\r\n", pid))
}

// expectRedis reads +PONG and then the lines of INFO up to the wanted one.
func expectRedis(answer *bufio.Reader, want string) error {
	pong, err := answer.ReadString('\n')
	if err != nil {
		return err
	}
	if pong != "+PONG\r\n" {
		return fmt.Errorf("answered %q to PING", pong)
	}
	for {
		line, err := answer.ReadString('\n')
		if err != nil {
			return fmt.Errorf("look for %q: %w", want, err)
		}
		if line == want {
			return nil
		}
		if strings.HasPrefix(line, "process_id:") {
			return fmt.Errorf("somebody else's redis-server answers: %q", line)
		}
	}
}
