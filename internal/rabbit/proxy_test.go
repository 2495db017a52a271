package rabbit_test

import (
	"net"
	"net/url"
	"testing"

	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/netfault"
)

// through returns the broker's URL by way of a new proxy.
func through(t *testing.T, address string) (*netfault.Proxy, string) {
	t.Helper()
	u := must.Get(url.Parse(address))(t)
	p := netfault.Start(t, u.Host)
	u.Host = p.Addr
	return p, u.String()
}

// silentBroker accepts connections and never answers.
func silentBroker(t *testing.T) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	return "amqp://guest:secret@" + l.Addr().String() + "/" // the kernel accepts; nothing reads
}
