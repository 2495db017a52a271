package apiclient

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"
)

// ErrRemote means that an address is not a loopback address, where others are forbidden.
var ErrRemote = errors.New("the address is not a loopback one")

// NewHTTP makes an HTTP client for many users, with at most conns connections to one host. A call
// may take 30 s, the wait for a connection included.
func NewHTTP(conns int) *http.Client { return newHTTP(conns, nil) }

// NewLoopbackHTTP is NewHTTP, except that connections to other machines fail with ErrRemote.
func NewLoopbackHTTP(conns int) *http.Client { return newHTTP(conns, loopbackOnly) }

// newHTTP makes a client that ignores proxies of the environment and follows no redirects. So every
// call reaches the named host, and each answer is the API's own.
func newHTTP(conns int, control func(_, address string, _ syscall.RawConn) error) *http.Client {
	dialer := &net.Dialer{Timeout: 5 * time.Second, Control: control}
	return &http.Client{
		Timeout: 30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
		Transport: &http.Transport{
			DialContext:         dialer.DialContext,
			MaxIdleConns:        0, // no limit over all hosts: MaxConnsPerHost bounds each
			MaxIdleConnsPerHost: conns,
			MaxConnsPerHost:     conns,
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
