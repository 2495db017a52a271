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

// ClusterNodeTimeout is the time after which the cluster marks a silent node as failed. The node's
// replica becomes master 1 to 2 s later. The value is short, but longer than a busy machine delays
// a process.
const ClusterNodeTimeout = 2 * time.Second

// slots is the number of slots of a Redis Cluster. They are spread evenly over clusterMasters
// masters.
const (
	slots          = 16384
	clusterMasters = 3
)

// clusterPatience limits steps that take a cluster a few seconds, such as its formation or an
// election.
const clusterPatience = 90 * time.Second

// RedisNodes are the servers of a private Redis Cluster on loopback. The cluster serves all slots
// that have a master (cluster-require-full-coverage no).
type RedisNodes struct {
	// Nodes lists the initial masters and then their replicas. The replicas are in the masters'
	// order.
	Nodes []*RedisServer
	buses []*bus // one for each node, if BusWires is set
}

// RedisClusterOptions are options for a cluster of three masters.
type RedisClusterOptions struct {
	Replicas int      // number for each master
	Conf     []string // lines for every node's redis.conf
	// BusWires routes the cluster bus over wires that CutOff cuts. It needs Linux, where all of
	// 127.0.0.0/8 is loopback.
	BusWires bool
}

// RedisCluster starts a cluster for one test and stops it at cleanup. Without replicas the start
// takes about 2 s.
func RedisCluster(tb testing.TB, o RedisClusterOptions) *RedisNodes {
	tb.Helper()
	return forTest(tb, "redis-cluster", o.start)
}

// start returns when every node reports a healthy cluster, knows all nodes, and all replicas follow
// (2 to 4 s).
func (o RedisClusterOptions) start(ctx context.Context, dir string) (*RedisNodes, error) {
	c := &RedisNodes{}
	for i := range clusterMasters * (1 + o.Replicas) {
		if err := c.add(ctx, filepath.Join(dir, fmt.Sprint(i)), o); err != nil {
			return nil, errors.Join(fmt.Errorf("node %d of a cluster: %w", i, err), c.discard())
		}
	}
	if err := c.form(ctx, o.Replicas); err != nil {
		return nil, errors.Join(fmt.Errorf("form a cluster: %w; its logs:\n%s", err, c.Log()),
			c.discard())
	}
	return c, nil
}

// add starts one more node outside the cluster.
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

// clusterConf stores the node's identity outside its data directory. Therefore a node keeps its
// identity after RestartEmpty.
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
	// Redis treats a source other than 127.0.0.1 as another machine. It still listens only on
	// 127.0.0.1.
	return append(conf, fmt.Sprintf("cluster-announce-bus-port %d", wire.Port()),
		"bind-source-addr "+wire.source, "protected-mode no")
}

// Addrs returns the addresses of all nodes.
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

// Log returns the end of each node's log.
func (c *RedisNodes) Log() string { return logsOf(c.Nodes) }

// bus is the proxy through which other nodes reach one node. Each node connects from its own
// loopback address, so the proxy can identify the source.
type bus struct {
	*netfault.Proxy
	source string // the node's address for outgoing connections
}

func newBus(node int) (*bus, error) {
	p, err := netfault.Open()
	return &bus{Proxy: p, source: fmt.Sprintf("127.0.0.%d", node+11)}, err
}

// CutOff partitions a node from all other nodes, its replicas included. Clients still reach all
// nodes. After ClusterNodeTimeout the others promote the node's replica, and the node itself stops
// accepting writes.
func (c *RedisNodes) CutOff(ctx context.Context, node *RedisServer) error {
	if err := c.eachBus(node, (*netfault.Proxy).Block); err != nil {
		return err
	}
	// Replicas connect to the clients' port, so an ACL forbids their commands instead.
	if err := node.run(ctx, "ACL", "SETUSER", "default", "-psync", "-sync"); err != nil {
		return err
	}
	return node.run(ctx, "CLIENT", "KILL", "TYPE", "replica")
}

// Rejoin ends the partition of CutOff. It does not wait until the nodes agree; Settled does.
func (c *RedisNodes) Rejoin(ctx context.Context, node *RedisServer) error {
	if err := c.eachBus(node, (*netfault.Proxy).Unblock); err != nil {
		return err
	}
	return node.run(ctx, "ACL", "SETUSER", "default", "+psync", "+sync")
}

// eachBus calls change for every wire, so that it blocks or admits what connects a node with the
// others: everyone on the node's own wire, and the node on the other wires.
func (c *RedisNodes) eachBus(
	node *RedisServer, change func(wire *netfault.Proxy, source string),
) error {
	at := slices.Index(c.Nodes, node)
	if at < 0 || at >= len(c.buses) {
		return errors.New("the cluster started without BusWires")
	}
	for i, wire := range c.buses {
		source := c.buses[at].source
		if i == at {
			source = netfault.Everyone
		}
		change(wire.Proxy, source)
	}
	return nil
}
