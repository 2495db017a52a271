package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"flashsale.dev/seckill/internal/testing/netfault"
)

// ClusterNodeTimeout is after how long a node of a test's cluster that does not answer the others
// has failed; its replica is master some 1 to 2 s later. Short, and yet more than a busy machine
// keeps a process waiting.
const ClusterNodeTimeout = 2 * time.Second

// A Redis Cluster has slots of them; a test's has clusterMasters, over which they are spread
// evenly.
const (
	slots          = 16384
	clusterMasters = 3
)

// clusterPatience bounds what takes a cluster seconds at most: to form, to agree on a new master.
const clusterPatience = 90 * time.Second

// ErrNoBusWires is returned by CutOff where the cluster was started without BusWires.
var ErrNoBusWires = errors.New("the cluster has no bus wires")

// RedisNodes are the servers of a private Redis Cluster on loopback. Slots without a master do not
// keep the others from serving (cluster-require-full-coverage no).
type RedisNodes struct {
	// Nodes are the masters, as they were at the start, and then their replicas: those of the first
	// master first.
	Nodes []*RedisServer
	buses []*bus // of each node, where BusWires were asked for
}

// RedisClusterOptions change how a cluster of three masters is started.
type RedisClusterOptions struct {
	Replicas int      // of each master
	Conf     []string // lines of every node's redis.conf
	// BusWires have the nodes speak to each other over wires that CutOff cuts. They need Linux'
	// whole 127.0.0.0/8.
	BusWires bool
}

// RedisCluster starts a cluster for one test and stops it at cleanup: without replicas it is up in
// about 2 s.
func RedisCluster(tb testing.TB, o RedisClusterOptions) *RedisNodes {
	tb.Helper()
	return forTest(tb, "redis-cluster", o.start)
}

// start returns when every node says that the cluster is well, knows all the others, and all
// replicas follow (2 to 4 s).
func (o RedisClusterOptions) start(ctx context.Context, dir string) (*RedisNodes, error) {
	c := &RedisNodes{}
	for i := range clusterMasters * (1 + o.Replicas) {
		if err := c.add(ctx, filepath.Join(dir, fmt.Sprint(i)), o); err != nil {
			return nil, errors.Join(fmt.Errorf("node %d of a cluster: %w", i, err), c.discard())
		}
	}
	ctx, cancel := context.WithTimeout(ctx, clusterPatience)
	defer cancel()
	if err := c.form(ctx, o.Replicas); err != nil {
		return nil, errors.Join(fmt.Errorf("form a cluster: %w; its logs:\n%s", err, c.Log()),
			c.discard())
	}
	return c, nil
}

// add starts one more node, on its own.
func (c *RedisNodes) add(ctx context.Context, dir string, o RedisClusterOptions) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var wire *bus
	if o.BusWires {
		var err error
		if wire, err = newBus(len(c.Nodes)); err != nil {
			return err
		}
		c.buses = append(c.buses, wire)
	}
	node, err := withProgram(ctx, "redis-server", func(path string) (*RedisServer, error) {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		return newRedis(path, dir, append(clusterConf(dir, port, wire), o.Conf...), nil)
	})
	if err == nil {
		c.Nodes = append(c.Nodes, node)
	}
	return err
}

// clusterConf keeps who a node is beside its data: one that lost its data (RestartEmpty) is still
// that node.
func clusterConf(dir string, busPort int, wire *bus) []string {
	conf := append(redisDefaults(), "cluster-enabled yes", fmt.Sprintf("cluster-port %d", busPort),
		fmt.Sprintf("cluster-config-file %q", filepath.Join(dir, "nodes.conf")),
		fmt.Sprintf("cluster-node-timeout %d", ClusterNodeTimeout.Milliseconds()),
		"cluster-require-full-coverage no", "cluster-announce-ip 127.0.0.1",
		"repl-diskless-sync-delay 0")
	if wire == nil {
		return conf
	}
	wire.Redirect(loopback(busPort))
	// Redis takes a source other than 127.0.0.1 for another machine; it listens on 127.0.0.1 alone
	// all the same.
	return append(conf, fmt.Sprintf("cluster-announce-bus-port %d", wire.Port()),
		"bind-source-addr "+wire.source, "protected-mode no")
}

// Addrs are the addresses of all nodes.
func (c *RedisNodes) Addrs() []string {
	addrs := make([]string, len(c.Nodes))
	for i, node := range c.Nodes {
		addrs[i] = node.Addr()
	}
	return addrs
}

func (c *RedisNodes) discard() error {
	for _, wire := range c.buses {
		wire.Close()
	}
	return discardAll(c.Nodes)
}

// Log is the end of what each node wrote.
func (c *RedisNodes) Log() string { return logsOf(c.Nodes) }

// bus is the proxy over which the other nodes reach one node. Each node connects from a loopback
// address of its own, so that the proxy knows which node calls.
type bus struct {
	*netfault.Proxy
	source string // the node's own address when it connects to others
}

func newBus(node int) (*bus, error) {
	p, err := netfault.Open()
	return &bus{Proxy: p, source: fmt.Sprintf("127.0.0.%d", node+11)}, err
}

// CutOff partitions a node from all others, its replicas included. Clients still reach all nodes.
// After ClusterNodeTimeout the others promote the node's replica, and the node itself stops taking
// writes.
func (c *RedisNodes) CutOff(ctx context.Context, node *RedisServer) error {
	if err := c.eachBus(node, (*netfault.Proxy).Block); err != nil {
		return err
	}
	// Replicas connect to the clients' port: their commands are forbidden instead.
	if err := node.run(ctx, "ACL", "SETUSER", "default", "-psync", "-sync"); err != nil {
		return err
	}
	return node.run(ctx, "CLIENT", "KILL", "TYPE", "replica")
}

// Join ends what CutOff did.
func (c *RedisNodes) Join(ctx context.Context, node *RedisServer) error {
	if err := c.eachBus(node, (*netfault.Proxy).Unblock); err != nil {
		return err
	}
	return node.run(ctx, "ACL", "SETUSER", "default", "+psync", "+sync")
}

// eachBus changes what a node's own wire lets in from everyone, and the others' wires from the
// node.
func (c *RedisNodes) eachBus(
	node *RedisServer, change func(wire *netfault.Proxy, source string),
) error {
	at := slices.Index(c.Nodes, node)
	if at < 0 || at >= len(c.buses) {
		return ErrNoBusWires
	}
	change(c.buses[at].Proxy, netfault.Everyone)
	for _, other := range c.buses {
		if other != c.buses[at] {
			change(other.Proxy, c.buses[at].source)
		}
	}
	return nil
}
