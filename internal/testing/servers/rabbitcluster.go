package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/testing/netfault"
)

// RabbitNodes are the nodes of one private RabbitMQ cluster. A node that loses sight of the majority pauses itself
// (cluster_partition_handling = pause_minority), and a node that is silent for 5 s is down to the others (net_ticktime).
//
// What the nodes say to each other goes over wires of this process, one per pair and direction, which CutOff cuts: each node
// is informed its peers' ports by a port mapper of its own. So a node can be partitioned from the others as by a cable pulled out,
// without a rule in the kernel or a right to make one, while clients and command line tools go on reaching it.
type RabbitNodes struct {
	Nodes []*RabbitServer

	mappers []*portMapper
	wires   map[[2]int]*netfault.Proxy // by who calls and who is called
}

// RabbitCluster starts a cluster of n nodes for one test (some 15 s) and ends it at cleanup.
func RabbitCluster(tb testing.TB, n int) *RabbitNodes {
	tb.Helper()
	return forTest(tb, "rabbits", func(ctx context.Context, dir string) (*RabbitNodes, error) {
		return StartRabbitCluster(ctx, dir, n)
	})
}

// StartRabbitCluster runs n nodes with their data and logs in dir and returns when each knows all. The caller ends them.
func StartRabbitCluster(ctx context.Context, dir string, n int) (*RabbitNodes, error) {
	path, err := rabbitProgram()
	if err != nil {
		return nil, err
	}
	return retryPorts(func() (*RabbitNodes, error) {
		c, err := newRabbitNodes(path, dir, n)
		if err == nil {
			err = c.boot(ctx)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start a cluster of rabbitmq-servers: %w", err), c.discard(), os.RemoveAll(dir), os.MkdirAll(dir, 0o700))
		}
		return c, nil
	})
}

func newRabbitNodes(path, dir string, n int) (*RabbitNodes, error) {
	c := &RabbitNodes{wires: make(map[[2]int]*netfault.Proxy)}
	for i := range n {
		ports, err := newRabbitPorts()
		if err != nil {
			return c, err
		}
		home := filepath.Join(dir, fmt.Sprint("node", i))
		// One scheduler each, which does not spin: the nodes share few cores with each other and with those that they serve.
		node := rabbitOn(path, home, ports, func() error { return c.configure(i, home) },
			"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 1:1 +sbwt none -kernel net_ticktime 5", "RABBITMQ_CTL_ERL_ARGS=-kernel net_ticktime 5")
		node.nodes = c
		node.ready = func(ctx context.Context) error { return errors.Join(node.ask(ctx), node.bootedWhole()) }
		c.Nodes = append(c.Nodes, node)
	}
	return c, c.connect()
}

// connect lays the wires and reports each node where they begin.
func (c *RabbitNodes) connect() error {
	for i, node := range c.Nodes {
		ports := map[string]uint16{}
		for j, peer := range c.Nodes {
			port := uint16(peer.ports.distribution)
			if i != j {
				w, err := netfault.Open(loopback(peer.ports.distribution))
				if err != nil {
					return err
				}
				c.wires[[2]int{i, j}], port = w, uint16(w.Port()) // a port
			}
			name, _, _ := strings.Cut(peer.Name(), "@")
			ports[name] = port
		}
		mapper, err := startPortMapper(node.ports.epmd, ports)
		if err != nil {
			return err
		}
		c.mappers = append(c.mappers, mapper)
	}
	return nil
}

// configure names the nodes that one without data joins: those that run. The first to start finds none and is the cluster.
func (c *RabbitNodes) configure(i int, home string) error {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	// All nodes have one secret.
	if err := os.WriteFile(filepath.Join(home, ".erlang.cookie"), []byte("SECKILLTESTS"), 0o400); err != nil && !errors.Is(err, os.ErrPermission) {
		return err
	}
	conf := "cluster_partition_handling = pause_minority\n"
	for j, peer := range c.Nodes {
		if j != i && peer.Running() {
			conf += fmt.Sprintf("cluster_formation.classic_config.nodes.%d = %s\n", j+1, peer.Name())
		}
	}
	return configureRabbit(home, c.Nodes[i].ports, conf)
}

// boot starts the first node, then the others at once, and waits until all know all.
func (c *RabbitNodes) boot(ctx context.Context) error {
	if err := c.Nodes[0].first(ctx); err != nil {
		return err
	}
	g, joining := errgroup.WithContext(ctx)
	for _, node := range c.Nodes[1:] {
		g.Go(func() error { return node.first(joining) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return c.AwaitWhole(ctx)
}

// Name is the Erlang node's.
func (r *RabbitServer) Name() string { return r.ports.node() }

// URLs are the nodes' addresses for AMQP with a vhost, in the nodes' order.
func (c *RabbitNodes) URLs(vhost string) []string {
	urls := make([]string, 0, len(c.Nodes))
	for _, node := range c.Nodes {
		urls = append(urls, node.URL()+vhost)
	}
	return urls
}

// Others are all nodes but one.
func (c *RabbitNodes) Others(not *RabbitServer) []*RabbitServer {
	return slices.DeleteFunc(slices.Clone(c.Nodes), func(n *RabbitServer) bool { return n == not })
}

// Log is the end of every node's.
func (c *RabbitNodes) Log() string {
	var all strings.Builder
	for _, node := range c.Nodes {
		fmt.Fprintf(&all, "== %s ==\n%s\n", node.Name(), node.Server.Log())
	}
	return all.String()
}

// discard kills all, whose data is about to be removed.
func (c *RabbitNodes) discard() error {
	var problems []error
	for _, node := range c.Nodes {
		problems = append(problems, node.discard())
	}
	for _, m := range c.mappers {
		m.close()
	}
	for _, w := range c.wires {
		w.Close()
	}
	return errors.Join(problems...)
}
