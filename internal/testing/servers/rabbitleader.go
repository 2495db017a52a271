package servers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Place is where a quorum queue is, by the names of nodes.
type Place struct {
	Leader  string   `json:"leader"`
	Members []string `json:"members"`
	Online  []string `json:"online"`
}

// Place asks a node where a quorum queue is.
func (r *RabbitServer) Place(ctx context.Context, vhost, queue string) (p Place, err error) {
	err = r.api.call(ctx, http.MethodGet, "/api/queues/"+url.PathEscape(vhost)+"/"+url.PathEscape(queue), &p)
	return p, err
}

// Leader is the node that leads a quorum queue, by what the nodes that answer say; those are asked one after the other.
func (c *RabbitNodes) Leader(ctx context.Context, vhost, queue string) (*RabbitServer, error) {
	var problems []error
	for _, node := range c.Nodes {
		p, err := node.Place(ctx, vhost, queue)
		i := slices.IndexFunc(c.Nodes, func(n *RabbitServer) bool { return n.Name() == p.Leader && n.Running() })
		if err == nil && i >= 0 {
			return c.Nodes[i], nil
		}
		problems = append(problems, fmt.Errorf("%s says %+v: %w", node.Name(), p, err))
	}
	return nil, fmt.Errorf("find the leader of %s: %w", queue, errors.Join(problems...))
}

// MoveLeader has a quorum queue be led by another of its members, as `rabbitmq-queues rebalance` does it, and returns when it is.
func (c *RabbitNodes) MoveLeader(ctx context.Context, vhost, queue string, to *RabbitServer) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	move := fmt.Sprintf(`{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"%s">>, queue, <<"%s">>)), rabbit_quorum_queue:transfer_leadership(Q, '%s').`,
		vhost, queue, to.Name())
	said, err := to.Ctl(ctx, "eval", move)
	if err != nil {
		return fmt.Errorf("move the leader of %s: %w", queue, err)
	}
	return await(ctx, func() error {
		p, err := to.Place(ctx, vhost, queue)
		if err == nil && p.Leader != to.Name() {
			err = fmt.Errorf("%s leads %s (the transfer said %s)", p.Leader, queue, said)
		}
		return err
	})
}

// restartEmpty is what an operator does with a node that lost its disk: the others forget it, it joins them as a new one, and
// gets a member of each quorum queue again.
func (c *RabbitNodes) restartEmpty(ctx context.Context, node *RabbitServer) error {
	if err := errors.Join(node.Kill(), node.wipe()); err != nil {
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
	return await(ctx, func() error {
		said, err := other.tool(ctx, "rabbitmq-queues", "grow", node.Name(), "all")
		if err == nil && strings.Contains(said, "error") {
			err = fmt.Errorf("grow: %s", said)
		}
		return err
	})
}
