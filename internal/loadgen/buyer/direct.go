package buyer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"
)

// ErrRemote says that an address is not this machine's own, and nobody allowed that.
var ErrRemote = errors.New("the address is not a loopback one")

// errAborted says that the whole Direct was ended.
var errAborted = errors.New("the calls were ended")

// DirectOptions of a Direct.
type DirectOptions struct {
	Conns       int           // most connections, over all hosts
	Timeout     time.Duration // of a call, waiting for a connection included; 10 s if 0
	AllowRemote bool          // else every connection to another machine is ErrRemote
}

// Direct is an http.RoundTripper for load: net/http's writer and reader on connections of its own, without the two
// goroutines that net/http's Transport keeps for each. A call costs half of the processor time (docs/explanation/adr/0040).
//
// It speaks HTTP/1.1 in the clear, reads whole bodies of up to 1 MiB, takes no proxy from the environment, and never
// sends anything twice by itself: what a call met, its caller hears. A call ends at its context's deadline or after
// Timeout, whichever is first; a context that is cancelled ends it only before it has a connection, or through Abort.
type Direct struct {
	timeout time.Duration
	dialer  net.Dialer
	free    chan struct{} // one for each connection that may still be opened

	mu      sync.Mutex
	idle    map[string][]*wire
	open    map[*wire]struct{}
	aborted bool
}

// NewDirect makes one.
func NewDirect(o DirectOptions) *Direct {
	d := &Direct{
		timeout: o.Timeout, free: make(chan struct{}, max(1, o.Conns)),
		idle: make(map[string][]*wire), open: make(map[*wire]struct{}),
	}
	if d.timeout <= 0 {
		d.timeout = 10 * time.Second
	}
	if !o.AllowRemote {
		d.dialer.Control = loopbackOnly
	}
	return d
}

// loopbackOnly looks at the address that is about to be connected to, so that no name can lead elsewhere.
func loopbackOnly(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%s: %w", address, ErrRemote)
	}
	return nil
}

// Client is an HTTP client that calls through it and follows no redirects.
func (d *Direct) Client() *http.Client {
	return &http.Client{Transport: d, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// RoundTrip makes one call.
func (d *Direct) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "http" {
		return nil, fmt.Errorf("scheme %q: only http is spoken", req.URL.Scheme)
	}
	until := time.Now().Add(d.timeout)
	if t, ok := req.Context().Deadline(); ok && t.Before(until) {
		until = t
	}
	w, err := d.take(req.Context(), req.URL.Host, until)
	if err != nil {
		return nil, err
	}
	resp, err := w.exchange(req, until)
	d.giveBack(w, err == nil && !resp.Close)
	return resp, err
}

// take finds an idle connection or opens one, as soon as one more may be used.
func (d *Direct) take(ctx context.Context, host string, until time.Time) (*wire, error) {
	select {
	case d.free <- struct{}{}:
	default:
		if err := d.wait(ctx, until); err != nil {
			return nil, err
		}
	}
	if w := d.idleTo(host); w != nil {
		return w, nil
	}
	w, err := d.dial(ctx, host, until)
	if err != nil {
		<-d.free
	}
	return w, err
}

func (d *Direct) wait(ctx context.Context, until time.Time) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case d.free <- struct{}{}:
		return nil
	case <-timer.C:
		return fmt.Errorf("no connection was free in time: %w", os.ErrDeadlineExceeded)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *Direct) dial(ctx context.Context, host string, until time.Time) (*wire, error) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	address := host
	if _, _, err := net.SplitHostPort(host); err != nil {
		address = net.JoinHostPort(host, "80")
	}
	conn, err := d.dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	w := newWire(host, conn)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.aborted {
		return nil, errors.Join(errAborted, conn.Close())
	}
	d.open[w] = struct{}{}
	return w, nil
}

// TimedOut tells whether a call ended because its time was up.
func TimedOut(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout() || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}
