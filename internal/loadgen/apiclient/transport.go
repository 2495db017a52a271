package apiclient

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"
)

// ErrRemote means that an address is not a loopback address and HTTPOptions forbids others.
var ErrRemote = errors.New("the address is not a loopback one")

// HTTPOptions configure an HTTP client for many users.
type HTTPOptions struct {
	Conns        int           // most connections to one host
	Timeout      time.Duration // of one call, waiting for a connection included; 30 s if 0
	LoopbackOnly bool          // connections to other machines fail with ErrRemote
}

// NewHTTP makes an HTTP client with at most conns connections to one host.
func NewHTTP(conns int) *http.Client { return NewHTTPWith(HTTPOptions{Conns: conns}) }

// NewHTTPWith makes an HTTP client. It ignores proxies of the environment and follows no redirects,
// so that every call reaches the named host and each answer is the API's own.
func NewHTTPWith(o HTTPOptions) *http.Client {
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	if o.LoopbackOnly {
		dialer.Control = loopbackOnly
	}
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	return &http.Client{
		Timeout: o.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
		Transport: &http.Transport{
			DialContext:         dialer.DialContext,
			MaxIdleConns:        0, // no limit over all hosts: MaxConnsPerHost bounds each
			MaxIdleConnsPerHost: o.Conns,
			MaxConnsPerHost:     o.Conns,
			// Shorter than the idle timeouts of the API (2 min) and nginx (75 s). The client then
			// never reuses a connection that the server is about to close.
			IdleConnTimeout:    30 * time.Second,
			DisableCompression: true, // a load test measures the API, not gzip
		},
	}
}

// loopbackOnly checks the address of each connection, because a name may resolve anywhere.
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
