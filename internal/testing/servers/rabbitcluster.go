package servers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/testing/netfault"
)

// rabbitNodes is how many a cluster has; rabbitPoll is how often one that changes is asked.
const (
	rabbitNodes = 3
	rabbitPoll  = 50 * time.Millisecond
)

// RabbitNodes are the three nodes of one private RabbitMQ cluster. A node that loses sight of the
// majority pauses itself (cluster_partition_handling = pause_minority), and a node that is silent
// for 5 s is down to the others (net_ticktime).
//
// What the nodes say to each other goes over wires of this process, one per pair and direction,
// which CutOff cuts: a port mapper of its own reports each node its peers' ports. So a node can be
// partitioned from the others as by a cable pulled out, without a rule in the kernel or a right to
// make one, while clients and command line tools go on reaching it.
type RabbitNodes struct {
	Nodes []*RabbitServer

	mappers []*portMapper
	wires   map[[2]int]*netfault.Proxy // by who calls and who is called
}

// RabbitCluster starts a cluster for one test (some 15 s) and ends it at cleanup.
func RabbitCluster(tb testing.TB) *RabbitNodes {
	tb.Helper()
	return forTest(tb, "rabbits", startRabbitCluster)
}

// startRabbitCluster returns when each node knows all.
func startRabbitCluster(ctx context.Context, dir string) (*RabbitNodes, error) {
	return withProgram(ctx, "rabbitmq-server", func(path string) (*RabbitNodes, error) {
		// A first try may have left files.
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
			return nil, err
		}
		return newRabbitNodes(path, dir)
	})
}

func newRabbitNodes(path, dir string) (*RabbitNodes, error) {
	c := &RabbitNodes{wires: make(map[[2]int]*netfault.Proxy)}
	for i := range rabbitNodes {
		// One scheduler each, which does not spin: the nodes share few cores with each other and
		// with those that they serve.
		node, err := newRabbit(path, filepath.Join(dir, fmt.Sprint("node", i)),
			"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 1:1 +sbwt none -kernel net_ticktime 5",
			"RABBITMQ_CTL_ERL_ARGS=-kernel net_ticktime 5")
		if err != nil {
			return nil, err
		}
		node.nodes = c
		node.prepare = func(context.Context) error { return c.configure(node) }
		node.ready = func(ctx context.Context) error {
			return errors.Join(node.isReady(ctx), node.bootedWhole())
		}
		c.Nodes = append(c.Nodes, node)
	}
	if err := c.connect(); err != nil {
		return nil, errors.Join(err, c.discard())
	}
	return c, nil
}

// connect lays the wires and reports each node where they begin.
func (c *RabbitNodes) connect() error {
	for i, node := range c.Nodes {
		ports := map[string]uint16{}
		for j, peer := range c.Nodes {
			port := peer.ports.distribution
			if i != j {
				w, err := netfault.Open(loopback(port))
				if err != nil {
					return err
				}
				c.wires[[2]int{i, j}], port = w, w.Port()
			}
			name, _, _ := strings.Cut(peer.Name(), "@")
			ports[name] = uint16(port)
		}
		mapper, err := startPortMapper(node.ports.epmd, ports)
		if err != nil {
			return err
		}
		c.mappers = append(c.mappers, mapper)
	}
	return nil
}

// configure names the nodes that one without data joins: those that run. The first to start finds
// none and is the cluster.
func (c *RabbitNodes) configure(node *RabbitServer) error {
	if err := os.MkdirAll(node.proc.Dir, 0o700); err != nil {
		return err
	}
	// All nodes have one secret. The broker has made the file of a node that starts again its own.
	cookie := filepath.Join(node.proc.Dir, ".erlang.cookie")
	err := os.WriteFile(cookie, []byte("SECKILLTESTS"), 0o400)
	if err != nil && !errors.Is(err, os.ErrPermission) {
		return err
	}
	conf := "cluster_partition_handling = pause_minority\n"
	for j, peer := range c.Others(node) {
		if peer.Running() {
			conf += fmt.Sprintf("cluster_formation.classic_config.nodes.%d = %s\n", j+1,
				peer.Name())
		}
	}
	return node.configure(conf)
}

// first starts the first node, then the others at once, and waits until all know all.
func (c *RabbitNodes) first(ctx context.Context) error {
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
func (c *RabbitNodes) Log() string { return logsOf(c.Nodes) }

// discard kills all, whose data is about to be removed.
func (c *RabbitNodes) discard() error {
	err := discardAll(c.Nodes)
	for _, m := range c.mappers {
		m.close()
	}
	for _, w := range c.wires {
		w.Close()
	}
	return err
}

// CutOff partitions a node from all others: nothing it and they send each other arrives, and no
// node is informed. Clients go on reaching all of them.
func (c *RabbitNodes) CutOff(node *RabbitServer) { c.eachWire(node, (*netfault.Proxy).Cut) }

// Heal restores what CutOff cut. It does not wait for the nodes to find each other: AwaitWhole
// does.
func (c *RabbitNodes) Heal(node *RabbitServer) { c.eachWire(node, (*netfault.Proxy).Restore) }

func (c *RabbitNodes) eachWire(node *RabbitServer, change func(*netfault.Proxy)) {
	i := slices.Index(c.Nodes, node)
	for pair, w := range c.wires {
		if pair[0] == i || pair[1] == i {
			change(w)
		}
	}
}

// AwaitWhole waits until every node sees every other.
func (c *RabbitNodes) AwaitWhole(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	return await(ctx, rabbitPoll, func() error {
		for _, node := range c.Nodes {
			var seen []struct{ Running bool }
			if err := node.Manage(ctx, http.MethodGet, "/api/nodes", &seen); err != nil {
				return err
			}
			up := 0
			for _, peer := range seen {
				if peer.Running {
					up++
				}
			}
			if up != len(c.Nodes) {
				return fmt.Errorf("%s sees %d nodes", node.Name(), up)
			}
		}
		return nil
	})
}

// bootedWhole says nil when the node has come to the end of its start, which is after it takes
// connections: a vhost that is made elsewhere before that does not come up on it, and its maker
// waits for a minute.
func (r *RabbitServer) bootedWhole() error {
	log := r.proc.LogTail(1 << 20)
	began := strings.LastIndex(log, "Starting RabbitMQ")
	if strings.LastIndex(log, "Server startup complete") < began {
		return errors.New("it has not come to the end of its start")
	}
	return nil
}

// Leader is the node that leads a quorum queue, by what the nodes that answer say; those are asked
// one after the other.
func (c *RabbitNodes) Leader(ctx context.Context, vhost, queue string) (*RabbitServer, error) {
	var problems []error
	for _, node := range c.Nodes {
		p, err := node.Place(ctx, vhost, queue)
		i := slices.IndexFunc(c.Nodes, func(n *RabbitServer) bool {
			return n.Name() == p.Leader && n.Running()
		})
		if err == nil && i >= 0 {
			return c.Nodes[i], nil
		}
		problems = append(problems, fmt.Errorf("%s says %+v: %w", node.Name(), p, err))
	}
	return nil, fmt.Errorf("find the leader of %s: %w", queue, errors.Join(problems...))
}

// MoveLeader has a quorum queue be led by another of its members, as `rabbitmq-queues rebalance`
// does it, and returns when it is.
func (c *RabbitNodes) MoveLeader(ctx context.Context, vhost, queue string, to *RabbitServer) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	said, err := to.Ctl(ctx, "eval", fmt.Sprintf(
		`{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"%s">>, queue, <<"%s">>)), `+
			`rabbit_quorum_queue:transfer_leadership(Q, '%s').`, vhost, queue, to.Name()))
	if err != nil {
		return fmt.Errorf("move the leader of %s: %w", queue, err)
	}
	return await(ctx, rabbitPoll, func() error {
		p, err := to.Place(ctx, vhost, queue)
		if err == nil && p.Leader != to.Name() {
			err = fmt.Errorf("%s leads %s (the transfer said %s)", p.Leader, queue, said)
		}
		return err
	})
}

// restartEmpty is what an operator does with a node that lost its disk: the others forget it, it
// joins them as a new one, and gets a member of each quorum queue again.
func (c *RabbitNodes) restartEmpty(ctx context.Context, node *RabbitServer) error {
	if err := errors.Join(node.Kill(), os.RemoveAll(node.data)); err != nil {
		return err
	}
	other := c.Others(node)[0]
	if _, err := other.tool(ctx, "rabbitmq-queues", "shrink", node.Name()); err != nil {
		return err
	}
	if _, err := other.Ctl(ctx, "forget_cluster_node", node.Name()); err != nil {
		return err
	}
	if err := node.first(ctx); err != nil {
		return fmt.Errorf("join again: %w", err)
	}
	if err := c.AwaitWhole(ctx); err != nil {
		return err
	}
	return await(ctx, rabbitPoll, func() error {
		said, err := other.tool(ctx, "rabbitmq-queues", "grow", node.Name(), "all")
		if err == nil && strings.Contains(said, "error") {
			err = fmt.Errorf("grow: %s", said)
		}
		return err
	})
}
