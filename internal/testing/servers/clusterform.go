package servers

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// form makes a cluster of nodes that do not know each other yet, the way redis-cli --cluster create does: slots, epochs that
// differ, meet, replicas.
func (c *RedisNodes) form(ctx context.Context, masters, replicasEach int) error {
	for i, node := range c.Nodes {
		if _, err := ask(ctx, node.addr, "CLUSTER", "SET-CONFIG-EPOCH", i+1); err != nil {
			return err
		}
		if i < masters {
			if _, err := ask(ctx, node.addr, "CLUSTER", "ADDSLOTSRANGE", i*Slots/masters, (i+1)*Slots/masters-1); err != nil {
				return err
			}
		}
	}
	if err := c.meet(ctx); err != nil {
		return err
	}
	for i, replica := range c.Nodes[masters:] {
		if err := c.follow(ctx, replica, c.Nodes[i/replicasEach]); err != nil {
			return err
		}
	}
	return c.Settled(ctx)
}

// meet introduces everybody to the first node, and waits until everybody knows everybody.
func (c *RedisNodes) meet(ctx context.Context) error {
	first, err := c.self(ctx, c.Nodes[0])
	if err != nil {
		return err
	}
	host, port, _ := strings.Cut(first.addr, ":")
	for _, node := range c.Nodes[1:] {
		if _, err := ask(ctx, node.addr, "CLUSTER", "MEET", host, port, first.busPort); err != nil {
			return err
		}
	}
	return eventually(ctx, "all nodes to know each other", func() error {
		return c.each(ctx, func(node *RedisServer, view []clusterNode) error {
			for _, other := range view {
				if other.has("handshake") || !other.linked {
					return fmt.Errorf("%s has not met %s", node.addr, other.addr)
				}
			}
			if len(view) != len(c.Nodes) {
				return fmt.Errorf("%s knows %d of %d nodes", node.addr, len(view), len(c.Nodes))
			}
			return nil
		})
	})
}

func (c *RedisNodes) follow(ctx context.Context, replica, master *RedisServer) error {
	self, err := c.self(ctx, master)
	if err != nil {
		return err
	}
	_, err = ask(ctx, replica.addr, "CLUSTER", "REPLICATE", self.id)
	return err
}

// Settled waits until every node that runs says that the cluster is well, agrees with the others about who is master of how many
// slots, and follows its master if it is a replica. A paused node never settles.
func (c *RedisNodes) Settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, clusterPatience)
	defer cancel()
	return eventually(ctx, "the cluster to settle", func() error {
		want := ""
		return c.each(ctx, func(node *RedisServer, view []clusterNode) error {
			if err := well(ctx, node); err != nil {
				return err
			}
			has := picture(view)
			if want == "" {
				want = has
			}
			if has != want {
				return fmt.Errorf("%s sees\n%sand another\n%s", node.addr, has, want)
			}
			return nil
		})
	})
}

// well reports that a node finds the cluster well and, as a replica, has a link to its master over which all data has come.
func well(ctx context.Context, node *RedisServer) error {
	info, err := askText(ctx, node.addr, "CLUSTER", "INFO")
	if err != nil {
		return err
	}
	replication, err := askText(ctx, node.addr, "INFO", "replication")
	if err != nil {
		return err
	}
	if !strings.Contains(info, "cluster_state:ok") {
		return fmt.Errorf("%s does not find the cluster well", node.addr)
	}
	if strings.Contains(replication, "role:slave") && !strings.Contains(replication, "master_link_status:up") {
		return fmt.Errorf("%s does not follow its master yet", node.addr)
	}
	if strings.Contains(replication, "state=") && !strings.Contains(replication, "state=online") {
		return fmt.Errorf("a replica of %s is still being fed", node.addr)
	}
	return nil
}

// each gives a view of the cluster from every node that runs.
func (c *RedisNodes) each(ctx context.Context, visit func(*RedisServer, []clusterNode) error) error {
	for _, node := range c.Nodes {
		if !node.Running() {
			continue
		}
		view, err := viewOf(ctx, node.addr)
		if err != nil {
			return err
		}
		if err := visit(node, view); err != nil {
			return err
		}
	}
	return nil
}

// clusterPoll is how often a cluster that changes is read.
const clusterPoll = 20 * time.Millisecond

// eventually tries until it works or ctx ends.
func eventually(ctx context.Context, what string, try func() error) error {
	tick := time.NewTicker(clusterPoll)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s (%w): %w", what, ctx.Err(), err)
		case <-tick.C:
		}
	}
}
