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

// rabbitNodes is the number of nodes of a cluster. rabbitPoll is the interval between checks of a
// changing cluster, rabbitPatience the limit of a wait for it.
const (
	rabbitNodes    = 3
	rabbitPoll     = 50 * time.Millisecond
	rabbitPatience = 5 * time.Minute
)

// RabbitNodes are the three nodes of one private RabbitMQ cluster. A node in a minority pauses
// itself (cluster_partition_handling = pause_minority). The others mark a node as down after 5
// silent seconds (net_ticktime).
//
// The nodes' traffic passes through wires in this process, one for each pair and direction, and
// CutOff cuts them. Each node has its own port mapper, which reports the wires' ports as its peers'
// ports. A test can therefore partition a node as a pulled cable does. This needs no kernel rules
// and no privileges. Clients and command line tools still reach the node.
type RabbitNodes struct {
	Nodes []*RabbitServer

	wires map[[2]int]*netfault.Proxy // by source and destination node
}

// RabbitCluster starts a cluster for one test (about 15 s) and stops it at cleanup.
func RabbitCluster(tb testing.TB) *RabbitNodes {
	tb.Helper()
	return forTest(tb, "rabbits", startRabbitCluster)
}

// startRabbitCluster returns when each node knows all nodes.
func startRabbitCluster(ctx context.Context, dir string) (*RabbitNodes, error) {
	return withProgram(ctx, "rabbitmq-server", func(path string) (*RabbitNodes, error) {
		// An earlier attempt may have left files.
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
			return nil, err
		}
		return newRabbitNodes(path, dir)
	})
}

func newRabbitNodes(path, dir string) (*RabbitNodes, error) {
	c := &RabbitNodes{wires: make(map[[2]int]*netfault.Proxy)}
	for i := range rabbitNodes {
		// Each node has one scheduler without busy waiting. The nodes share few cores with each
		// other and with their clients.
		node, err := newRabbit(path, filepath.Join(dir, fmt.Sprint("node", i)),
			"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 1:1 +sbwt none -kernel net_ticktime 5",
			"RABBITMQ_CTL_ERL_ARGS=-kernel net_ticktime 5")
		if err != nil {
			return nil, err
		}
		node.nodes = c
		node.prepare = func(context.Context) error { return c.configure(node) }
		node.ready = func(ctx context.Context) error {
			return errors.Join(node.isReady(ctx), node.startupComplete())
		}
		c.Nodes = append(c.Nodes, node)
	}
	if err := c.connect(); err != nil {
		return nil, errors.Join(err, c.discard())
	}
	return c, nil
}

// connect opens the wires and reports their ports to each node's port mapper.
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
			ports[peer.shortName()] = uint16(port)
		}
		var err error
		if node.mapper, err = startPortMapper(node.ports.epmd, ports); err != nil {
			return err
		}
	}
	return nil
}

// configure names the running nodes, which a node without data joins. The first node finds none and
// forms the cluster.
func (c *RabbitNodes) configure(node *RabbitServer) error {
	if err := os.MkdirAll(node.proc.Dir, 0o700); err != nil {
		return err
	}
	// All nodes share one secret. The broker makes the file of a restarted node read-only.
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

// first starts the first node, then the others concurrently. It waits until all nodes know each
// other.
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

// URLs returns the nodes' AMQP addresses with a vhost, in the nodes' order.
func (c *RabbitNodes) URLs(vhost string) []string {
	urls := make([]string, 0, len(c.Nodes))
	for _, node := range c.Nodes {
		urls = append(urls, node.URL()+vhost)
	}
	return urls
}

// Others returns all nodes but one.
func (c *RabbitNodes) Others(not *RabbitServer) []*RabbitServer {
	return slices.DeleteFunc(slices.Clone(c.Nodes), func(n *RabbitServer) bool { return n == not })
}

// Log returns the end of every node's log.
func (c *RabbitNodes) Log() string { return logsOf(c.Nodes) }

// discard kills all nodes before the deletion of their data.
func (c *RabbitNodes) discard() error {
	err := discardAll(c.Nodes)
	for _, w := range c.wires {
		w.Close()
	}
	return err
}

// CutOff partitions a node from all others. Their messages to each other do not arrive, and no node
// gets a notification. Clients still reach all nodes.
func (c *RabbitNodes) CutOff(node *RabbitServer) { c.eachWire(node, (*netfault.Proxy).Cut) }

// Heal ends the partition of CutOff. It does not wait until the nodes have found each other;
// AwaitWhole does.
func (c *RabbitNodes) Heal(node *RabbitServer) { c.eachWire(node, (*netfault.Proxy).Restore) }

func (c *RabbitNodes) eachWire(node *RabbitServer, change func(*netfault.Proxy)) {
	i := slices.Index(c.Nodes, node)
	for pair, w := range c.wires {
		if pair[0] == i || pair[1] == i {
			change(w)
		}
	}
}

// AwaitWhole waits until every node sees all others.
func (c *RabbitNodes) AwaitWhole(ctx context.Context) error {
	return await(ctx, rabbitPatience, rabbitPoll, func(ctx context.Context) error {
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

// startupComplete returns nil when the node has logged the end of its start. It accepts connections
// earlier, but a vhost that another node creates then does not start on this node, and its creator
// waits for a minute.
func (r *RabbitServer) startupComplete() error {
	log := r.proc.LogTail(1 << 20)
	began := strings.LastIndex(log, "Starting RabbitMQ")
	if strings.LastIndex(log, "Server startup complete") < began {
		return errors.New("it has not come to the end of its start")
	}
	return nil
}

// Leader returns the node that leads a quorum queue. It reads this from the nodes one by one until
// one answers.
func (c *RabbitNodes) Leader(ctx context.Context, vhost, queue string) (*RabbitServer, error) {
	var problems []error
	for _, node := range c.Nodes {
		state, err := node.QueueState(ctx, vhost, queue)
		i := slices.IndexFunc(c.Nodes, func(n *RabbitServer) bool {
			return n.Name() == state.Leader && n.Running()
		})
		if err == nil && i >= 0 {
			return c.Nodes[i], nil
		}
		problems = append(problems, fmt.Errorf("%s says %+v: %w", node.Name(), state, err))
	}
	return nil, fmt.Errorf("find the leader of %s: %w", queue, errors.Join(problems...))
}

// MoveLeader transfers a quorum queue's leadership to another member, as `rabbitmq-queues
// rebalance` does. It returns when the transfer is complete.
func (c *RabbitNodes) MoveLeader(ctx context.Context, vhost, queue string, to *RabbitServer) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	said, err := to.Ctl(ctx, "eval", fmt.Sprintf(
		`{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"%s">>, queue, <<"%s">>)), `+
			`rabbit_quorum_queue:transfer_leadership(Q, '%s').`, vhost, queue, to.Name()))
	if err != nil {
		return fmt.Errorf("move the leader of %s: %w", queue, err)
	}
	return await(ctx, rabbitPatience, rabbitPoll, func(ctx context.Context) error {
		state, err := to.QueueState(ctx, vhost, queue)
		if err == nil && state.Leader != to.Name() {
			err = fmt.Errorf("%s leads %s (the transfer said %s)", state.Leader, queue, said)
		}
		return err
	})
}

// restartEmpty replaces a node that lost its disk, as an operator does. The others forget the node.
// It joins them as a new one and gets a member of each quorum queue again.
func (c *RabbitNodes) restartEmpty(ctx context.Context, node *RabbitServer) error {
	if err := errors.Join(node.Kill(), os.RemoveAll(node.data)); err != nil {
		return err
	}
	other := c.Others(node)[0]
	// RabbitMQ 4.3 refuses to remove a dead node's members. There forget_cluster_node removes them.
	said, err := other.tool(ctx, "rabbitmq-queues", "shrink", node.Name())
	if err != nil && !strings.Contains(said, "node_not_running") {
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
	return await(ctx, rabbitPatience, rabbitPoll, func(ctx context.Context) error {
		said, err := other.tool(ctx, "rabbitmq-queues", "grow", node.Name(), "all")
		if err == nil && strings.Contains(said, "error") {
			err = fmt.Errorf("grow: %s", said)
		}
		return err
	})
}
