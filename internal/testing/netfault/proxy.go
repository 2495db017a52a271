package netfault

import (
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Everyone is the source host by which Block and Unblock mean all clients.
const Everyone = ""

// Proxy forwards connections to servers and injects network faults.
type Proxy struct {
	// host:port for clients; a comma-separated list if the proxy has several listeners
	Addr string

	entries []*entry
	running sync.WaitGroup

	mu      sync.Mutex
	open    *sync.Cond // uses mu; signals changes of cut and ended
	cut     bool
	ended   bool
	delay   time.Duration // of requests and of answers
	lag     time.Duration // further delay of answers
	trap    *Trap
	blocked []string            // source hosts; one for each Block
	conns   map[net.Conn]string // source host by connection, "" for connections to servers
}

// Trap cuts all traffic at the first request that Match accepts, until Restore. The proxy then
// calls Sprung one time, in a goroutine of its own.
type Trap struct {
	Match  func(request []byte) bool // gets the bytes of one read from a client
	Pass   bool                      // whether the proxy still delivers the matching request
	Sprung func()
}

// Start opens a proxy to a server until the test ends. With several servers it works as a load
// balancer: each connection goes to the next server that accepts.
func Start(t testing.TB, servers ...string) *Proxy {
	t.Helper()
	p, err := Open(servers...)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

// Open works as Start without a test. The caller closes the proxy.
func Open(servers ...string) (*Proxy, error) {
	e, err := listen("127.0.0.1:0", servers...)
	if err != nil {
		return nil, err
	}
	return newProxy(e), nil
}

// StartCluster opens one proxy to all nodes of a Redis Cluster on 127.0.0.1. Clients reach each
// node at its own port of the loopback address host. Nodes announce each other's addresses to
// clients, so the proxy rewrites 127.0.0.1 as host in their answers. Both must have the same
// length.
func StartCluster(t testing.TB, host string, nodes ...string) *Proxy {
	t.Helper()
	entries := make([]*entry, 0, len(nodes))
	for _, node := range nodes {
		own, port, err := net.SplitHostPort(node)
		require.NoError(t, err)
		require.Len(t, host, len(own), "Redis' protocol counts the bytes of a name")
		e, err := listen(net.JoinHostPort(host, port), node)
		require.NoError(t, err)
		e.answers.Store(&renaming{from: []byte(own), to: []byte(host)})
		entries = append(entries, e)
	}
	p := newProxy(entries...)
	t.Cleanup(p.Close)
	return p
}

func newProxy(entries ...*entry) *Proxy {
	p := &Proxy{entries: entries, conns: make(map[net.Conn]string)}
	p.open = sync.NewCond(&p.mu)
	addrs := make([]string, 0, len(entries))
	for _, e := range entries {
		addrs = append(addrs, e.listener.Addr().String())
		p.running.Go(func() { e.serve(p) })
	}
	p.Addr = strings.Join(addrs, ",")
	return p
}

// Port returns the port of the first listener.
func (p *Proxy) Port() int {
	addr, _ := p.entries[0].listener.Addr().(*net.TCPAddr)
	return addr.Port
}

// Redirect sends new connections of the first listener to another server.
func (p *Proxy) Redirect(server string) {
	p.entries[0].servers.Store(&[]string{server})
}

// Cut stops all traffic. Data from during the cut arrives after Restore.
func (p *Proxy) Cut() { p.set(func() { p.cut = true }) }

// Restore ends Cut and removes the trap.
func (p *Proxy) Restore() { p.set(func() { p.cut, p.trap = false, nil }) }

// Slow delays requests and answers by d each, until the next Slow.
func (p *Proxy) Slow(d time.Duration) { p.set(func() { p.delay = d }) }

// Lag delays answers by d beyond Slow. A replica behind the proxy lags its master, but the master
// receives its data at once.
func (p *Proxy) Lag(d time.Duration) { p.set(func() { p.lag = d }) }

// SetTrap sets a trap in place of any other.
func (p *Proxy) SetTrap(trap *Trap) { p.set(func() { p.trap = trap }) }

// Alter replaces a text in later requests with another of the same length. Two empty texts end it.
func (p *Proxy) Alter(from, to string) {
	for _, e := range p.entries {
		e.requests.Store(&renaming{from: []byte(from), to: []byte(to)})
	}
}

// Drop closes all connections, as the end of one side's process does.
func (p *Proxy) Drop() { p.set(func() { p.dropIf(func(string) bool { return true }) }) }

// Block closes all connections from a source host. It also refuses new ones until Unblock.
func (p *Proxy) Block(source string) {
	p.set(func() {
		p.blocked = append(p.blocked, source)
		p.dropIf(p.blocks)
	})
}

// Unblock ends every Block of a source host.
func (p *Proxy) Unblock(source string) {
	p.set(func() {
		p.blocked = slices.DeleteFunc(p.blocked, func(s string) bool { return s == source })
	})
}

// Close ends the proxy and all its connections.
func (p *Proxy) Close() {
	for _, e := range p.entries {
		_ = e.listener.Close()
	}
	p.set(func() { p.ended, p.cut = true, false })
	p.Drop()
	p.running.Wait()
}

// set changes the proxy under its lock and wakes what waits for the end of a cut.
func (p *Proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.open.Broadcast()
}

// blocks reports whether the proxy refuses connections from a source. Connections to servers have
// no source.
func (p *Proxy) blocks(source string) bool {
	return source != "" &&
		(slices.Contains(p.blocked, Everyone) || slices.Contains(p.blocked, source))
}

func (p *Proxy) dropIf(match func(source string) bool) {
	for conn, source := range p.conns {
		if match(source) {
			_ = conn.Close()
			delete(p.conns, conn)
		}
	}
}

// keep registers a connection, so Close closes it. If the proxy has ended or blocks the source,
// keep closes the connection at once.
func (p *Proxy) keep(conn net.Conn, source string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || p.blocks(source) {
		_ = conn.Close()
		return false
	}
	p.conns[conn] = source
	return true
}

func (p *Proxy) drop(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
	_ = conn.Close()
}

// wait waits for the end of a cut, and returns the delay of requests or else of answers.
func (p *Proxy) wait(requests bool) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.cut {
		p.open.Wait()
	}
	if requests {
		return p.delay
	}
	return p.delay + p.lag
}

// springs reports whether a request triggers the trap and whether the proxy still delivers it.
func (p *Proxy) springs(request []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trap == nil || p.cut || !p.trap.Match(request) {
		return false
	}
	t := p.trap
	p.trap, p.cut = nil, true
	go t.Sprung()
	return t.Pass
}
