package installation

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// Proxy is a wire between programs and servers. It can be cut (nothing gets through and nobody is told, as on a network), made slow,
// and it can stop a program at one certain request.
type Proxy struct {
	Addr string // where it is entered: of several doors all of them, in a comma list

	doors   []*door
	running sync.WaitGroup

	mu    sync.Mutex
	open  *sync.Cond // of mu: the wire is not cut
	cut   bool
	ended bool
	delay time.Duration
	lag   time.Duration // of answers, beyond the delay
	trap  *Trap
	conns []net.Conn
}

// Trap waits for the first request that matches and then calls Sprung, once, in a goroutine of its own. From that
// request on nothing gets through the proxy in either direction until it is mended; the request itself does where
// Pass is set.
type Trap struct {
	Match  func(request []byte) bool
	Pass   bool
	Sprung func()
}

// NewProxy opens a wire for the length of a test, to a server, or to the nodes of a cluster behind a balancer, which gives each connection
// another node of those that take one.
func NewProxy(t testing.TB, servers ...string) *Proxy {
	t.Helper()
	return newProxy(t, newDoor(t, "127.0.0.1:0", servers...))
}

func newProxy(t testing.TB, doors ...*door) *Proxy {
	t.Helper()
	p := &Proxy{doors: doors}
	p.open = sync.NewCond(&p.mu)
	addrs := make([]string, 0, len(doors))
	for _, d := range doors {
		addrs = append(addrs, d.listener.Addr().String())
		p.running.Go(func() { d.serve(p) })
	}
	p.Addr = strings.Join(addrs, ",")
	t.Cleanup(p.close)
	return p
}

// Cut lets nothing through any more; what is sent meanwhile arrives after Mend.
func (p *Proxy) Cut() { p.set(func() { p.cut = true }) }

// Mend lets everything through again.
func (p *Proxy) Mend() { p.set(func() { p.cut, p.trap = false, nil }) }

// Slow has everything take so much longer, in each direction.
func (p *Proxy) Slow(d time.Duration) { p.set(func() { p.delay = d }) }

// Lag has answers alone take so much longer: a replica behind it is so far behind its master, which hears from it at once.
func (p *Proxy) Lag(d time.Duration) { p.set(func() { p.lag = d }) }

// Set sets a trap.
func (p *Proxy) Set(trap *Trap) { p.set(func() { p.trap = trap }) }

// Drop ends all connections, as the end of the program at one side would.
func (p *Proxy) Drop() {
	p.set(func() {
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.conns = nil
	})
}

func (p *Proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.open.Broadcast()
}

func (p *Proxy) close() {
	for _, d := range p.doors {
		_ = d.listener.Close()
	}
	p.set(func() { p.ended, p.cut = true, false })
	p.Drop()
	p.running.Wait()
}

// keep has the wire's end, or Drop, end two connections; false where it has ended already.
func (p *Proxy) keep(client, server net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.conns = append(p.conns, client, server)
	}
	return !p.ended
}

// wait waits until the wire is not cut, and tells how slow it is.
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

// springs looks whether a request is the one that the trap waits for, and tells whether it passes all the same.
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
