package rabbit_test

import (
	"net"
	"net/url"
	"testing"

	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/netfault"
)

// through starts a proxy to the broker and returns the URL of the broker through it.
func through(t *testing.T, address string) (*netfault.Proxy, string) {
	t.Helper()
	u := must.Get(url.Parse(address))(t)
	p := netfault.Start(t, u.Host)
	u.Host = p.Addr
	return p, u.String()
}

// silentBroker returns the URL of a server that accepts connections and never answers.
func silentBroker(t *testing.T) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	return "amqp://guest:secret@" + l.Addr().String() + "/" // only the kernel accepts
}
