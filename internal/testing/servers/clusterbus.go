package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"flashsale.dev/seckill/internal/testing/netfault"
)

// ErrNoBusWires is returned by CutOff where the cluster was started without WithBusWires.
var ErrNoBusWires = errors.New("the cluster has no bus wires")

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

// CutOff partitions a node from all others, its replicas included. Clients still reach all nodes. After
// ClusterNodeTimeout the others promote the node's replica, and the node itself stops taking writes.
func (c *RedisNodes) CutOff(ctx context.Context, node *RedisServer) error {
	at := slices.Index(c.Nodes, node)
	if at < 0 || at >= len(c.buses) {
		return ErrNoBusWires
	}
	c.buses[at].Block(netfault.Everyone)
	for _, other := range c.buses {
		if other != c.buses[at] {
			other.Block(c.buses[at].source)
		}
	}
	// Replicas connect to the clients' port: their commands are forbidden instead.
	if _, err := ask(ctx, node.addr, "ACL", "SETUSER", "default", "-psync", "-sync"); err != nil {
		return err
	}
	_, err := ask(ctx, node.addr, "CLIENT", "KILL", "TYPE", "replica")
	return err
}

// Join ends what CutOff did.
func (c *RedisNodes) Join(ctx context.Context, node *RedisServer) error {
	at := slices.Index(c.Nodes, node)
	if at < 0 || at >= len(c.buses) {
		return ErrNoBusWires
	}
	c.buses[at].Unblock(netfault.Everyone)
	for _, other := range c.buses {
		other.Unblock(c.buses[at].source)
	}
	_, err := ask(ctx, node.addr, "ACL", "SETUSER", "default", "+psync", "+sync")
	return err
}
