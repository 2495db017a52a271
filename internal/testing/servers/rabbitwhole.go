package servers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// CutOff partitions a node from all others: nothing it and they send each other arrives, and nobody is informed. Clients go on
// reaching all of them.
func (c *RabbitNodes) CutOff(node *RabbitServer) { c.setCut(node, true) }

// Heal restores what CutOff cut. It does not wait for the nodes to find each other: AwaitWhole does.
func (c *RabbitNodes) Heal(node *RabbitServer) { c.setCut(node, false) }

func (c *RabbitNodes) setCut(node *RabbitServer, cut bool) {
	i := slices.Index(c.Nodes, node)
	for pair, w := range c.wires {
		if pair[0] == i || pair[1] == i {
			if cut {
				w.Cut()
			} else {
				w.Restore()
			}
		}
	}
}

// AwaitWhole waits until every node sees every other.
func (c *RabbitNodes) AwaitWhole(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	return await(ctx, func() error {
		for _, node := range c.Nodes {
			if err := node.seesAll(ctx, len(c.Nodes)); err != nil {
				return fmt.Errorf("%s: %w", node.Name(), err)
			}
		}
		return nil
	})
}

// seesAll says nil when n nodes run, as this one sees it.
func (r *RabbitServer) seesAll(ctx context.Context, n int) error {
	var nodes []struct {
		Name    string `json:"name"`
		Running bool   `json:"running"`
	}
	if err := r.api.call(ctx, http.MethodGet, "/api/nodes", &nodes); err != nil {
		return err
	}
	up := 0
	for _, node := range nodes {
		if node.Running {
			up++
		}
	}
	if up != n {
		return fmt.Errorf("it sees %v", nodes)
	}
	return nil
}

// bootedWhole says nil when the node has come to the end of its start, which is after it takes connections: a vhost that is made
// elsewhere before that does not come up on it, and whoever makes it waits for a minute.
func (r *RabbitServer) bootedWhole() error {
	log := tail(r.proc.log, 1<<20)
	if strings.LastIndex(log, "Server startup complete") < strings.LastIndex(log, "Starting RabbitMQ") {
		return errors.New("it has not come to the end of its start")
	}
	return nil
}

// await asks until there is no error or ctx ends.
func await(ctx context.Context, ask func() error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}
