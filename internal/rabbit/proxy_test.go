package rabbit_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy forwards connections to the broker and can cut them, as a dead process or network does.
type proxy struct {
	listener net.Listener
	broker   string
	running  sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

// through returns a URL that leads through a new proxy to the broker.
func through(t *testing.T, address string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	p := &proxy{listener: listen(t), broker: u.Host}
	u.Host = p.listener.Addr().String()
	p.running.Go(p.serve)
	t.Cleanup(func() {
		p.shut()
		p.running.Wait()
	})
	return p, u.String()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		broker, err := net.Dial("tcp", p.broker)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, broker)
		p.mu.Unlock()
		p.running.Go(func() { pass(client, broker) })
		p.running.Go(func() { pass(broker, client) })
	}
}

func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}

// shut refuses new connections and cuts the present ones.
func (p *proxy) shut() {
	_ = p.listener.Close()
	p.cut()
}

// cut closes all connections without AMQP's handshake.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

// silentBroker accepts connections and never answers.
func silentBroker(t *testing.T) string {
	t.Helper()
	return "amqp://guest:secret@" + listen(t).Addr().String() + "/" // the kernel accepts; nobody reads
}
