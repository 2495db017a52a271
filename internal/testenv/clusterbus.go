package testenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
)

// ErrNoBusWires is returned by CutOff where the cluster was started without WithBusWires.
var ErrNoBusWires = errors.New("the cluster has no bus wires")

// bus is the wire over which the other nodes reach one node. Every node speaks from a loopback address of its own, so that who
// calls is known.
type bus struct {
	listener net.Listener
	source   string // the node's own address when it calls others

	mu      sync.Mutex
	target  string
	refused []string // sources that are not let through; "" = none at all is
	calls   map[net.Conn]string
	running sync.WaitGroup
}

// everyone as a source that is refused.
const everyone = ""

func newBus(node int) (*bus, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &bus{listener: listener, source: fmt.Sprintf("127.0.0.%d", node+11), calls: make(map[net.Conn]string)}
	b.running.Go(b.serve)
	return b, nil
}

func (b *bus) port() int { return b.listener.Addr().(*net.TCPAddr).Port }

func (b *bus) leadTo(target string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.target = target
}

func (b *bus) serve() {
	for {
		conn, err := b.listener.Accept()
		if err != nil {
			return
		}
		b.running.Go(func() { b.carry(conn) })
	}
}

// carry brings bytes to and fro until one side ends or the wire is cut.
func (b *bus) carry(caller net.Conn) {
	defer caller.Close() // nothing is lost with it
	source, _, _ := net.SplitHostPort(caller.RemoteAddr().String())
	target, ok := b.enter(caller, source)
	if !ok {
		return
	}
	defer b.leave(caller)
	node, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer node.Close() // nothing is lost with it
	b.running.Go(func() {
		_, _ = io.Copy(caller, node)
		_ = caller.Close()
	})
	_, _ = io.Copy(node, caller)
}

func (b *bus) enter(caller net.Conn, source string) (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuses(source) {
		return "", false
	}
	b.calls[caller] = source
	return b.target, true
}

func (b *bus) refuses(source string) bool {
	return slices.Contains(b.refused, everyone) || slices.Contains(b.refused, source)
}

func (b *bus) leave(caller net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.calls, caller)
}

// refuse cuts what sources have, and lets them through no more until admit.
func (b *bus) refuse(source string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused = append(b.refused, source)
	for caller, from := range b.calls {
		if b.refuses(from) {
			_ = caller.Close()
		}
	}
}

func (b *bus) admit(source string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused = slices.DeleteFunc(b.refused, func(s string) bool { return s == source })
}

func (b *bus) close() error {
	err := b.listener.Close()
	b.refuse(everyone)
	b.running.Wait()
	return err
}

// CutOff takes a node away from all others, its replicas too, while clients reach all of them still: the others take it for failed
// after ClusterNodeTimeout and promote its replica; it takes writes itself until it has missed them for as long.
func (c *RedisNodes) CutOff(ctx context.Context, node *RedisServer) error {
	at := slices.Index(c.Nodes, node)
	if at < 0 || at >= len(c.buses) {
		return ErrNoBusWires
	}
	c.buses[at].refuse(everyone)
	for _, other := range c.buses {
		if other != c.buses[at] {
			other.refuse(c.buses[at].source)
		}
	}
	// Its replicas come to the port of the clients: they are sent away by what they ask for.
	if _, err := askResp(ctx, node.addr, "ACL", "SETUSER", "default", "-psync", "-sync"); err != nil {
		return err
	}
	_, err := askResp(ctx, node.addr, "CLIENT", "KILL", "TYPE", "replica")
	return err
}

// Join ends what CutOff did.
func (c *RedisNodes) Join(ctx context.Context, node *RedisServer) error {
	at := slices.Index(c.Nodes, node)
	if at < 0 || at >= len(c.buses) {
		return ErrNoBusWires
	}
	c.buses[at].admit(everyone)
	for _, other := range c.buses {
		other.admit(c.buses[at].source)
	}
	_, err := askResp(ctx, node.addr, "ACL", "SETUSER", "default", "+psync", "+sync")
	return err
}
