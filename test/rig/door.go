package rig

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// door is where a wire is entered. Whoever calls there reaches a server, or of several the one whose turn it is.
type door struct {
	listener net.Listener
	names    renaming // of addresses in the answers

	mu      sync.Mutex
	servers []string
}

func newDoor(t testing.TB, addr string, servers ...string) *door {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", addr)
	require.NoError(t, err)
	return &door{listener: l, servers: servers}
}

func (d *door) serve(p *Proxy) {
	for {
		client, err := d.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { d.connect(p, client) })
	}
}

func (d *door) connect(p *Proxy, client net.Conn) {
	p.wait(true)
	server, err := d.dial()
	if err != nil {
		_ = client.Close()
		return
	}
	if !p.keep(client, server) {
		_ = client.Close()
		_ = server.Close()
		return
	}
	p.running.Go(func() { p.pass(server, client, true) })
	p.pass(client, d.names.reader(server), false)
}

// dial connects to the server whose turn it is, or to the next that takes a connection.
func (d *door) dial() (conn net.Conn, err error) {
	for range d.servers {
		d.mu.Lock()
		server := d.servers[0]
		d.servers = append(d.servers[1:], server)
		d.mu.Unlock()
		if conn, err = net.Dial("tcp", server); err == nil {
			return conn, nil
		}
	}
	return nil, err
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
		defer to.Close()
		for c := range chunks {
			free := requests && p.springs(c.data)
			if !free {
				time.Sleep(time.Until(c.at.Add(p.wait(requests))))
			}
			_, _ = to.Write(c.data)
		}
	})
	defer close(chunks)
	defer from.Close()
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
