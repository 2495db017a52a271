package buyer

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// A connection that lay idle for so long is not used again: the other side may be about to close it (the API does after
// two minutes, nginx after a little over one).
const maxIdle = 30 * time.Second

// maxBody is how much of an answer is read.
const maxBody = 1 << 20

// wire is one connection, with at most one call on it.
type wire struct {
	host  string
	conn  net.Conn
	in    *bufio.Reader
	out   *bufio.Writer
	since time.Time // when it became idle
}

func newWire(host string, conn net.Conn) *wire {
	return &wire{host: host, conn: conn, in: bufio.NewReader(conn), out: bufio.NewWriterSize(conn, 1024)}
}

// exchange writes the request and reads the whole answer.
func (w *wire) exchange(req *http.Request, until time.Time) (*http.Response, error) {
	if err := w.conn.SetDeadline(until); err != nil {
		return nil, err
	}
	if err := req.Write(w.out); err != nil {
		return nil, fmt.Errorf("write a request: %w", err)
	}
	if err := w.out.Flush(); err != nil {
		return nil, fmt.Errorf("write a request: %w", err)
	}
	resp, err := http.ReadResponse(w.in, req)
	if err != nil {
		return nil, fmt.Errorf("read an answer: %w", err)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if closing := resp.Body.Close(); err == nil {
		err = closing
	}
	if err == nil && len(body) > maxBody {
		err = fmt.Errorf("an answer of more than %d bytes", maxBody)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, err
}

// idleTo takes a connection to a host that has not been idle for too long.
func (d *Direct) idleTo(host string) *wire {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.idle[host]
	for len(list) > 0 {
		w := list[len(list)-1]
		list = list[:len(list)-1]
		d.idle[host] = list
		if time.Since(w.since) < maxIdle {
			return w
		}
		d.drop(w)
	}
	return nil
}

// giveBack ends the use of a connection, and the connection with it where it can't be used again.
func (d *Direct) giveBack(w *wire, good bool) {
	d.mu.Lock()
	if good && !d.aborted {
		w.since = time.Now()
		d.idle[w.host] = append(d.idle[w.host], w)
	} else {
		d.drop(w)
	}
	d.mu.Unlock()
	<-d.free
}

func (d *Direct) drop(w *wire) {
	delete(d.open, w)
	_ = w.conn.Close() // nothing is owed to it any more
}

// Abort ends all calls, and those to come.
func (d *Direct) Abort() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.aborted = true
	for w := range d.open {
		d.drop(w)
	}
}

// CloseIdleConnections closes what nobody uses.
func (d *Direct) CloseIdleConnections() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for host, list := range d.idle {
		for _, w := range list {
			d.drop(w)
		}
		delete(d.idle, host)
	}
}
