package rabbit_test

import (
	"net"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/netfault"
)

// through returns the broker's URL by way of a new proxy.
func through(t *testing.T, address string) (*netfault.Proxy, string) {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	p := netfault.Start(t, u.Host)
	u.Host = p.Addr
	return p, u.String()
}

// silentBroker accepts connections and never answers.
func silentBroker(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return "amqp://guest:secret@" + l.Addr().String() + "/" // the kernel accepts; nothing reads
}
