package servers

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// SentinelMaster is the name under which a test's sentinels know the master.
const SentinelMaster = "seckill"

// Sentinels is how many watch over a master; two of them decide.
const Sentinels = 3

// Sentinel starts one sentinel that watches a master for one test, and stops it at cleanup. It has yet to find the master's
// replicas and the other sentinels. A master that is silent for a second is down to it.
func Sentinel(tb testing.TB, master *RedisServer) *RedisServer {
	tb.Helper()
	return forTest(tb, "sentinel", func(ctx context.Context, dir string) (*RedisServer, error) {
		path, err := redisProgram()
		if err != nil {
			return nil, err
		}
		return retryPorts(func() (*RedisServer, error) {
			server, err := newSentinel(path, dir, master.Addr())
			if err != nil {
				return nil, fmt.Errorf("set up a sentinel: %w", err)
			}
			if err := server.first(ctx); err != nil {
				return nil, fmt.Errorf("start a sentinel: %w", err)
			}
			return server, nil
		})
	})
}

func newSentinel(path, dir, master string) (*RedisServer, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	text, err := sentinelConf(port, dir, master)
	if err != nil {
		return nil, err
	}
	conf := filepath.Join(dir, "sentinel.conf") // it writes there what it learns
	server := &RedisServer{addr: loopback(port)}
	server.Server = &Server{
		name:    "sentinel",
		proc:    process{command: command{path: path, args: []string{conf, "--sentinel"}, dir: dir, log: filepath.Join(dir, "sentinel.log")}},
		timeout: 60 * time.Second,
		prepare: func(context.Context) error { return os.WriteFile(conf, []byte(text), 0o600) },
		wipe:    func() error { return os.Remove(conf) },
		ready:   func(ctx context.Context) error { return askRedis(ctx, server.addr, server.Pid()) },
	}
	return server, nil
}

// sentinelConf bounds a failover by 30 s: one whose votes were split is tried again after twice that, and a replica that
// follows its master over a proxy is not put right before.
func sentinelConf(port int, dir, master string) (string, error) {
	host, masterPort, err := net.SplitHostPort(master)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("bind 127.0.0.1\nport %d\ndaemonize no\ndir %q\nlogfile \"\"\n"+
		"sentinel monitor %[3]s %[4]s %[5]s %[6]d\nsentinel down-after-milliseconds %[3]s 1000\nsentinel failover-timeout %[3]s 30000\n",
		port, dir, SentinelMaster, host, masterPort, Sentinels/2+1), nil
}
