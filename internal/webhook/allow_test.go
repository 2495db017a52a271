package webhook

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestAllow_DialsPublicAddressesOnly checks addresses of every special network, also as IPv6 forms
// of IPv4 addresses.
func TestAllow_DialsPublicAddressesOnly(t *testing.T) {
	none := must.Get(ParseAllow(nil))(t)
	for _, text := range []string{
		"127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
		"169.254.169.254", "100.64.0.1", "0.0.0.0", "0.1.2.3", "192.0.0.1", "198.18.0.1",
		"224.0.0.1", "240.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fc00::1",
		"fd00:ec2::254", "ff02::1", "fec0::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
		"64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2001::1", "::127.0.0.1",
		"::ffff:0:127.0.0.1", "2001:db8::1", "100::1", "100:0:0:1::1", "3fff::1", "5f00::1",
		"4000::1",
	} {
		require.False(t, none.mayDial(netip.MustParseAddr(text)), text)
	}
	for _, text := range []string{
		"1.1.1.1", "8.8.8.8", "172.32.0.1", "2606:4700:4700::1111", "::ffff:1.1.1.1",
	} {
		require.True(t, none.mayDial(netip.MustParseAddr(text)), text)
	}
	some := must.Get(ParseAllow([]string{"10.1.0.0/16", " ::1 ", "Hooks.Example"}))(t)
	for text, may := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "10.2.0.1": false, "::1": true,
		"127.0.0.1": false,
	} {
		require.Equal(t, may, some.mayDial(netip.MustParseAddr(text)), text)
	}
	for _, bad := range []string{"http://x", "10.0.0.0/99", "a b", "", "host:80"} {
		_, err := ParseAllow([]string{bad})
		require.Error(t, err, bad)
	}
}

// TestCheckURL_RefusesWhatNoEndpointMayHave checks which URLs an endpoint may have.
func TestCheckURL_RefusesWhatNoEndpointMayHave(t *testing.T) {
	a := must.Get(ParseAllow([]string{"10.1.0.0/16", "hooks.example"}))(t)
	for _, good := range []string{
		"https://shop.example/events?x=1", "https://shop.example:8443", "http://10.1.2.3/x",
		"http://HOOKS.example:8080/x", "https://10.1.2.3/", "https://[2606:4700::1111]/",
	} {
		require.NoError(t, a.CheckURL(good), good)
	}
	for _, bad := range []string{
		"", "/x", "shop.example", "http://shop.example/", "ftp://shop.example/", "https://",
		"https://user:pass@shop.example/", "https://shop.example/#x", "https://127.0.0.1/",
		"https://[::1]/", "https://10.2.0.1/", "https://169.254.169.254/", "http://10.2.0.1/",
		"https://a b/", "https://shop.example/\n", "https://sh\u00f6p.example/", "javascript:1",
		"https://shop.example:0/", "https://shop.example:65536/", "https://shop.example:00/",
		"ftp://hooks.example/",
		"https://shop.example/" + string(make([]byte, maxURL)),
	} {
		err := a.CheckURL(bad)
		require.Equal(t, apierror.BadRequest, apierror.ReasonOf(err), bad)
	}
	require.ErrorContains(t, a.CheckURL("shop.example/events"), "such as https://")
	hosts := must.Get(ParseAllow([]string{"hooks.example"}))(t)
	for _, private := range []string{
		"https://localhost/", "https://intranet", "https://a.LOCALHOST./", "https://printer.local/",
		"https://metadata.google.internal/", "https://2130706433/", "https://0x7f000001/",
		"https://0177.0.0.1/", "https://127.1/", "https://./",
	} {
		err := hosts.CheckURL(private)
		require.Equal(t, apierror.BadRequest, apierror.ReasonOf(err), private)
		require.ErrorContains(t, err, "SECKILL_WEBHOOK_ALLOW", "the message names the remedy")
		require.NoError(t, a.CheckURL(private), "the dialled address decides: %s", private)
	}
}

// TestAllow_JudgesTheDialledAddress dials a name that resolves to a loopback address, as a name
// under an attacker's control may after it was checked.
func TestAllow_JudgesTheDialledAddress(t *testing.T) {
	l := must.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	_, err = Allow{}.dial(t.Context(), "tcp", "localhost:"+port)
	require.ErrorIs(t, err, errPrivateAddress)
	for _, entry := range []string{"localhost", "127.0.0.0/8"} {
		c := must.Get(must.Get(ParseAllow([]string{entry}))(t).dial(t.Context(), "tcp",
			"localhost:"+port))(t)
		require.NoError(t, c.Close())
	}
}
