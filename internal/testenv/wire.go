package testenv

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// wire carries TCP connections to one port of loopback, and can be cut as a cable can: nothing gets through in either direction, and
// nobody is told. What was sent meanwhile arrives when it is mended, as TCP's retransmissions would.
type wire struct {
	listener net.Listener
	to       string
	running  sync.WaitGroup

	mu    sync.Mutex
	open  *sync.Cond // of mu: it is not cut
	cut   bool
	ended bool
	conns map[net.Conn]struct{}
}

func newWire(to int) (*wire, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("lay a wire to port %d: %w", to, err)
	}
	w := &wire{listener: listener, to: loopback(to), conns: make(map[net.Conn]struct{})}
	w.open = sync.NewCond(&w.mu)
	w.running.Go(w.serve)
	return w, nil
}

// port is where it is reached.
func (w *wire) port() uint16 {
	addr, _ := w.listener.Addr().(*net.TCPAddr)
	return uint16(addr.Port)
}

// setCut cuts it or mends it.
func (w *wire) setCut(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	w.open.Broadcast()
}

func (w *wire) serve() {
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.running.Go(func() { w.carry(near) })
	}
}

// carry joins a connection to one of its own. While the wire is cut nobody answers it.
func (w *wire) carry(near net.Conn) {
	if !w.keep(near) || !w.pass() {
		_ = near.Close()
		return
	}
	far, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", w.to)
	if err != nil || !w.keep(far) {
		w.drop(near)
		return
	}
	w.running.Go(func() { w.copy(far, near) })
	w.copy(near, far)
}

func (w *wire) copy(to, from net.Conn) {
	defer w.drop(to)
	defer w.drop(from)
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if !w.pass() {
			return
		}
		if n > 0 {
			if _, failed := to.Write(buf[:n]); failed != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass waits until the wire is whole; false says that it is no more.
func (w *wire) pass() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.cut && !w.ended {
		w.open.Wait()
	}
	return !w.ended
}

func (w *wire) keep(conn net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return false
	}
	w.conns[conn] = struct{}{}
	return true
}

func (w *wire) drop(conn net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, conn)
	_ = conn.Close()
}

// close ends it and all that it carries.
func (w *wire) close() {
	w.mu.Lock()
	w.ended = true
	w.open.Broadcast()
	_ = w.listener.Close()
	for conn := range w.conns {
		_ = conn.Close()
	}
	w.mu.Unlock()
	w.running.Wait()
}
