package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ClusterNodeTimeout is after how long a node of a test's cluster that does not answer the others has failed; its replica is
// master some 1 to 2 s later. Short, and yet more than a busy machine keeps a process waiting.
const ClusterNodeTimeout = 2 * time.Second

// Slots is how many a Redis Cluster has.
const Slots = 16384

// clusterPatience bounds what takes a cluster seconds at most: to form, to agree on a new master.
const clusterPatience = 90 * time.Second

// RedisNodes are the servers of a private Redis Cluster on loopback. Slots are spread evenly over the masters; slots without a master do not
// keep the others from serving (cluster-require-full-coverage no).
type RedisNodes struct {
	// Nodes are the masters, as they were at the start, and then their replicas: those of the first master first.
	Nodes []*RedisServer
	buses []*bus // of each node, where Wired was asked for
}

// RedisClusterOption changes how a cluster is started.
type RedisClusterOption func(*clusterSettings)

type clusterSettings struct {
	conf  []RedisOption
	wired bool
}

// WithNodeConf adds lines of redis.conf to every node's.
func WithNodeConf(lines ...string) RedisClusterOption {
	return func(s *clusterSettings) { s.conf = append(s.conf, WithRedisConf(lines...)) }
}

// WithBusWires has the nodes speak to each other over wires that CutOff cuts. It needs Linux' whole 127.0.0.0/8.
func WithBusWires() RedisClusterOption {
	return func(s *clusterSettings) { s.wired = true }
}

// StartRedisCluster runs a cluster of so many masters, each with so many replicas, with everything in dir, and returns when every node says
// that the cluster is well, knows all the others, and all replicas follow (2 to 4 s). The caller stops it.
func StartRedisCluster(ctx context.Context, dir string, masters, replicasEach int, opts ...RedisClusterOption) (*RedisNodes, error) {
	path, err := redisProgram()
	if err != nil {
		return nil, err
	}
	var settings clusterSettings
	for _, opt := range opts {
		opt(&settings)
	}
	c := &RedisNodes{}
	for i := range masters * (1 + replicasEach) {
		if err := c.add(ctx, path, filepath.Join(dir, fmt.Sprint(i)), settings); err != nil {
			return nil, errors.Join(fmt.Errorf("start node %d of a cluster: %w", i, err), c.discard())
		}
	}
	ctx, cancel := context.WithTimeout(ctx, clusterPatience)
	defer cancel()
	if err := c.form(ctx, masters, replicasEach); err != nil {
		return nil, errors.Join(fmt.Errorf("form a cluster: %w; the ends of its logs:\n%s", err, c.Log()), c.discard())
	}
	return c, nil
}

// RedisCluster starts a cluster for one test and stops it at cleanup: three masters without replicas are up in about 2 s.
func RedisCluster(tb testing.TB, masters, replicasEach int, opts ...RedisClusterOption) *RedisNodes {
	tb.Helper()
	return forTest(tb, "redis-cluster", func(ctx context.Context, dir string) (*RedisNodes, error) {
		return StartRedisCluster(ctx, dir, masters, replicasEach, opts...)
	})
}

// add starts one more node, on its own.
func (c *RedisNodes) add(ctx context.Context, path, dir string, settings clusterSettings) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	wire := (*bus)(nil)
	if settings.wired {
		var err error
		if wire, err = newBus(len(c.Nodes)); err != nil {
			return err
		}
		c.buses = append(c.buses, wire)
	}
	node, err := retryPorts(func() (*RedisServer, error) {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		node, err := newRedis(path, dir, append(clusterConf(dir, port, wire), settings.conf...))
		if err != nil {
			return nil, err
		}
		return node, node.first(ctx)
	})
	if err != nil {
		return err
	}
	c.Nodes = append(c.Nodes, node)
	return nil
}

// clusterConf keeps who a node is beside its data: one that lost its data (RestartEmpty) is still that node.
func clusterConf(dir string, busPort int, wire *bus) []RedisOption {
	opts := []RedisOption{WithRedisConf(
		"cluster-enabled yes", fmt.Sprintf("cluster-port %d", busPort), fmt.Sprintf("cluster-config-file %q", filepath.Join(dir, "nodes.conf")),
		fmt.Sprintf("cluster-node-timeout %d", ClusterNodeTimeout.Milliseconds()),
		"cluster-require-full-coverage no", "cluster-announce-ip 127.0.0.1", "repl-diskless-sync-delay 0",
	)}
	if wire != nil {
		wire.Redirect(loopback(busPort))
		// Redis takes a source other than 127.0.0.1 for another machine; it listens on 127.0.0.1 alone all the same.
		opts = append(opts, WithRedisConf(fmt.Sprintf("cluster-announce-bus-port %d", wire.Port()), "bind-source-addr "+wire.source, "protected-mode no"))
	}
	return opts
}

// Addrs are the addresses of all nodes.
func (c *RedisNodes) Addrs() []string {
	addrs := make([]string, len(c.Nodes))
	for i, node := range c.Nodes {
		addrs[i] = node.Addr()
	}
	return addrs
}

// Stop ends all nodes, by force: each would write its state down for nobody.
func (c *RedisNodes) Stop() error { return c.discard() }

func (c *RedisNodes) discard() error {
	var problems []error
	for _, node := range c.Nodes {
		problems = append(problems, node.discard())
	}
	for _, wire := range c.buses {
		wire.Close()
	}
	return errors.Join(problems...)
}

// Log is the end of what each node wrote.
func (c *RedisNodes) Log() string {
	var b strings.Builder
	for i, node := range c.Nodes {
		fmt.Fprintf(&b, "-- node %d, %s:\n%s\n", i, node.Addr(), tail(node.proc.log, 2<<10))
	}
	return b.String()
}
