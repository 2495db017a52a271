package netfault

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// entry is one listener of a proxy and the servers behind it.
type entry struct {
	listener net.Listener
	answers  atomic.Pointer[renaming] // addresses to rewrite in answers
	requests atomic.Pointer[renaming] // see Alter
	servers  atomic.Pointer[[]string]
	turn     atomic.Int64
}

func listen(addr string, servers ...string) (*entry, error) {
	l, err := net.Listen("tcp", addr) // loopback
	if err != nil {
		return nil, fmt.Errorf("listen as a proxy: %w", err)
	}
	e := &entry{listener: l}
	e.servers.Store(&servers)
	return e, nil
}

func (e *entry) serve(p *Proxy) {
	for {
		client, err := e.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { e.connect(p, client) })
	}
}

// connect joins a client to a server. During a cut the client receives no data.
func (e *entry) connect(p *Proxy, client net.Conn) {
	source, _, _ := net.SplitHostPort(client.RemoteAddr().String())
	if !p.keep(client, source) {
		return
	}
	p.wait(true)
	server, err := e.dial()
	if err != nil || !p.keep(server, "") {
		p.drop(client)
		return
	}
	requests := &renamed{Reader: client, names: &e.requests}
	p.running.Go(func() { p.copy(server, client, requests, true) })
	p.copy(client, server, &renamed{Reader: server, names: &e.answers}, false)
}

// dial connects to the next server in rotation, or to the first after it that accepts.
func (e *entry) dial() (conn net.Conn, err error) {
	servers := *e.servers.Load()
	for range servers {
		turn := int(e.turn.Add(1)-1) % len(servers)
		if conn, err = net.Dial("tcp", servers[turn]); err == nil { // loopback
			return conn, nil
		}
	}
	return nil, err
}

// chunksInFlight is the number of chunks that a delayed proxy buffers. The source blocks beyond it.
// Each connection has two such buffers from its start, so they are small: programs open connections
// by the hundred after a fault.
const chunksInFlight = 1 << 10

// chunk holds the data of one read.
type chunk struct {
	data []byte
	at   time.Time // of the read
}

// copy forwards one direction in order, each chunk after the delay. It closes both ends when the
// source ends.
func (p *Proxy) copy(to, from net.Conn, data io.Reader, requests bool) {
	chunks := make(chan chunk, chunksInFlight)
	p.running.Go(func() {
		defer p.drop(to)
		for c := range chunks {
			// The request that springs a trap with Pass passes in spite of the cut that it causes.
			if passes := requests && p.springs(c.data); !passes {
				time.Sleep(time.Until(c.at.Add(p.wait(requests))))
			}
			_, _ = to.Write(c.data)
		}
	})
	defer close(chunks)
	defer p.drop(from)
	buf := make([]byte, 32<<10)
	for {
		n, err := data.Read(buf)
		if n > 0 {
			chunks <- chunk{bytes.Clone(buf[:n]), time.Now()}
		}
		if err != nil {
			return
		}
	}
}
