package servers

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// clusterPoll is the interval between reads of a changing cluster.
const clusterPoll = 20 * time.Millisecond

// form joins independent nodes to a cluster, as redis-cli --cluster create does. The steps are
// slots, different epochs, meet, replicas.
func (c *RedisNodes) form(ctx context.Context, replicasEach int) error {
	for i, node := range c.Nodes {
		err := node.run(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
		if err == nil && i < clusterMasters {
			first, end := i*slots/clusterMasters, (i+1)*slots/clusterMasters
			err = node.run(ctx, "CLUSTER", "ADDSLOTSRANGE", first, end-1)
		}
		if err != nil {
			return err
		}
	}
	if err := c.meet(ctx); err != nil {
		return err
	}
	for i, replica := range c.Nodes[clusterMasters:] {
		master, err := c.Nodes[i/replicasEach].self(ctx)
		if err == nil {
			err = replica.run(ctx, "CLUSTER", "REPLICATE", master.id)
		}
		if err != nil {
			return err
		}
	}
	return c.Settled(ctx)
}

// meet introduces all nodes to the first, and waits until every node knows all nodes.
func (c *RedisNodes) meet(ctx context.Context) error {
	first, err := c.Nodes[0].self(ctx)
	if err != nil {
		return err
	}
	host, port, _ := strings.Cut(first.addr, ":")
	for _, node := range c.Nodes[1:] {
		if err := node.run(ctx, "CLUSTER", "MEET", host, port, first.busPort); err != nil {
			return err
		}
	}
	return await(ctx, clusterPatience, clusterPoll, func(ctx context.Context) error {
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

// Settled waits until every running node reports a healthy cluster. All nodes must agree on the
// masters and their slots, and each replica must follow its master. A paused node never settles.
func (c *RedisNodes) Settled(ctx context.Context) error {
	return await(ctx, clusterPatience, clusterPoll, func(ctx context.Context) error {
		want := ""
		return c.each(ctx, func(node *RedisServer, view []clusterNode) error {
			seen := fingerprint(view)
			if want == "" {
				want = seen
			}
			if seen != want {
				return fmt.Errorf("%s sees\n%sand another\n%s", node.addr, seen, want)
			}
			return node.isHealthy(ctx)
		})
	})
}

// isHealthy returns nil if a node reports a healthy cluster. A replica must also have a link to its
// master, and a master's replicas must have all of its data.
func (r *RedisServer) isHealthy(ctx context.Context) error {
	info, err := r.askText(ctx, "CLUSTER", "INFO")
	if err != nil {
		return err
	}
	replication, err := r.askText(ctx, "INFO", "replication")
	if err != nil {
		return err
	}
	says := func(text string) bool { return strings.Contains(replication, text) }
	switch {
	case !strings.Contains(info, "cluster_state:ok"):
		return fmt.Errorf("%s does not find the cluster well", r.addr)
	case says("role:slave") && !says("master_link_status:up"):
		return fmt.Errorf("%s does not follow its master yet", r.addr)
	case says("state=") && !says("state=online"):
		return fmt.Errorf("a replica of %s still loads the data", r.addr)
	}
	return nil
}

// each returns the view of every running node.
func (c *RedisNodes) each(
	ctx context.Context, visit func(*RedisServer, []clusterNode) error,
) error {
	for _, node := range c.Nodes {
		if !node.Running() {
			continue
		}
		view, err := node.view(ctx)
		if err == nil {
			err = visit(node, view)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
