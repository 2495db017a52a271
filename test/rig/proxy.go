package rig

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Proxy is a wire between programs and a server, or the nodes of a cluster behind a balancer, which gives each connection another
// node of those that take one: it can be cut (nothing gets through and nobody is told, as on a
// network), made slow, and it can stop a program at one certain request.
type Proxy struct {
	Addr string

	listener net.Listener
	servers  []string
	running  sync.WaitGroup

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

// NewProxy opens a wire to a server, or to several, for the length of a test.
func NewProxy(t testing.TB, servers ...string) *Proxy {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &Proxy{Addr: l.Addr().String(), listener: l, servers: servers}
	p.open = sync.NewCond(&p.mu)
	p.running.Go(p.serve)
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
	_ = p.listener.Close()
	p.set(func() { p.ended, p.cut = true, false })
	p.Drop()
	p.running.Wait()
}

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.connect(client) })
	}
}

func (p *Proxy) connect(client net.Conn) {
	p.wait(true)
	server, err := p.dial()
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, client, server)
	ended := p.ended
	p.mu.Unlock()
	if ended {
		_ = client.Close()
		_ = server.Close()
		return
	}
	p.running.Go(func() { p.pass(server, client, true) })
	p.pass(client, server, false)
}

// dial connects to the server whose turn it is, or to the next that takes a connection.
func (p *Proxy) dial() (conn net.Conn, err error) {
	for range p.servers {
		p.mu.Lock()
		server := p.servers[0]
		p.servers = append(p.servers[1:], server)
		p.mu.Unlock()
		if conn, err = net.Dial("tcp", server); err == nil {
			return conn, nil
		}
	}
	return nil, err
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

// chunksUnderWay is how many of them a slow wire holds; beyond that it is slower still.
const chunksUnderWay = 1 << 14

// chunk is what was read at one moment.
type chunk struct {
	data []byte
	at   time.Time
}

// pass brings what comes from one side to the other, each chunk after the delay, in order.
func (p *Proxy) pass(to io.WriteCloser, from io.ReadCloser, requests bool) {
	chunks := make(chan chunk, chunksUnderWay)
	p.running.Go(func() {
		defer to.Close() //nolint:errcheck // the other side sees it
		for c := range chunks {
			free := requests && p.springs(c.data)
			if !free {
				time.Sleep(time.Until(c.at.Add(p.wait(requests))))
			}
			_, _ = to.Write(c.data)
		}
	})
	defer close(chunks)
	defer from.Close() //nolint:errcheck // the other side sees it
	for {
		data := make([]byte, 64<<10)
		n, err := from.Read(data)
		if n > 0 {
			chunks <- chunk{data[:n], time.Now()}
		}
		if err != nil {
			return
		}
	}
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
