package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"flashsale.dev/seckill/internal/seckill"
)

// guestsFor returns the guests that a caller may be.
func (a *api) guestsFor(r *http.Request) []seckill.Actor {
	if len(a.Guests) == 0 || !a.GuestsAnywhere && !isLocal(r) {
		return nil
	}
	return a.Guests
}

// isLocal reports whether a program or a browser page of this machine sent a request. A loopback
// address is not enough: a proxy on this machine has one for every caller. A browser has one too if
// a site made its own name resolve to 127.0.0.1. Such a page sends its name as Host. nginx without
// any setting sends a loopback address as Host and no header of its own, but HTTP/1.0.
func isLocal(r *http.Request) bool {
	for name := range r.Header {
		if name == "Forwarded" || name == "Via" || name == "X-Real-Ip" ||
			strings.HasPrefix(name, "X-Forwarded-") {
			return false
		}
	}
	for _, origin := range r.Header.Values("Origin") {
		if u, err := url.Parse(origin); err != nil || !isLoopback(u.Host) {
			return false
		}
	}
	return isLoopback(r.RemoteAddr) && isLoopback(r.Host) && r.ProtoAtLeast(1, 1)
}

// isLoopback reports whether a host with or without a port is localhost or a loopback address.
func isLoopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil { // no port
		host = strings.Trim(hostport, "[]")
	}
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()
}
