package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"flashsale.dev/seckill/internal/apierror"
)

// Allow names hosts and networks in which endpoints may have private addresses and use http. All
// other endpoints must have public addresses and use https. The zero value names none.
type Allow struct {
	hosts    map[string]bool
	networks []netip.Prefix
}

// ParseAllow parses host names, addresses and CIDRs.
func ParseAllow(entries []string) (Allow, error) {
	a := Allow{hosts: make(map[string]bool)}
	for _, text := range entries {
		text = strings.TrimSpace(text)
		network, err := netip.ParsePrefix(text)
		if addr, addrErr := netip.ParseAddr(text); addrErr == nil {
			network, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		switch {
		case err == nil:
			a.networks = append(a.networks, network.Masked())
		case text == "" || strings.ContainsAny(text, "/: "):
			return a, fmt.Errorf("%q is not a host, an address or a CIDR", text)
		default:
			a.hosts[strings.ToLower(text)] = true
		}
	}
	return a, nil
}

// names reports whether a host of a URL is named, by its name or its address.
func (a Allow) names(host string) bool {
	addr, err := netip.ParseAddr(host)
	return a.hosts[strings.ToLower(host)] || err == nil && a.contains(addr)
}

func (a Allow) contains(addr netip.Addr) bool {
	return slices.ContainsFunc(a.networks, func(n netip.Prefix) bool {
		return n.Contains(addr.Unmap())
	})
}

// CheckURL refuses a URL that can't be an endpoint's, with a BadRequest for the field url.
func (a Allow) CheckURL(raw string) error {
	u, err := url.Parse(raw)
	refuse := func(problem string) error { return apierror.NewBadField("url", "%s", problem) }
	switch {
	case err != nil || u.Hostname() == "" || len(raw) > maxURL || !isPrintable(raw):
		return refuse(fmt.Sprintf(
			"must be a URL such as https://shop.example/events, of at most %d bytes", maxURL))
	case u.User != nil || u.Fragment != "" || strings.Contains(raw, "#"):
		return refuse("must have no user and no fragment")
	case u.Scheme != "https" && (u.Scheme != "http" || !a.names(u.Hostname())):
		return refuse("must begin with https://, unless SECKILL_WEBHOOK_ALLOW names the host")
	case u.Port() != "" && !isPort(u.Port()):
		return refuse("must have a port from 1 to 65535")
	}
	addr, err := netip.ParseAddr(u.Hostname())
	// A name may resolve to any address, which dial judges. A private name can only be right where
	// a private network is allowed.
	private := err == nil && !a.mayDial(addr) ||
		err != nil && len(a.networks) == 0 && !a.names(u.Hostname()) && isPrivateName(u.Hostname())
	if private {
		return refuse("must not have a private address, unless SECKILL_WEBHOOK_ALLOW names it")
	}
	return nil
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// isPrivateName reports whether a name cannot be in the public DNS: it has a single label, is
// reserved for local use, or is a number. Some resolvers read numbers such as 0x7f000001 and 127.1
// as IPv4 addresses.
func isPrivateName(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	return last == host || last == "" || last[0] >= '0' && last[0] <= '9' ||
		slices.Contains([]string{"localhost", "local", "internal"}, last)
}

func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// dial connects to a host whose address is public or allowed. It judges the address that it is
// about to dial: judged earlier, the name could resolve to another address here.
func (a Allow) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: attemptTimeout, Control: a.control}
	if host, _, err := net.SplitHostPort(address); err == nil && a.hosts[strings.ToLower(host)] {
		d.Control = nil
	}
	return d.DialContext(ctx, network, address)
}

var errPrivateAddress = errors.New("the address is not public")

func (a Allow) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !a.mayDial(to.Addr()) {
		return errPrivateAddress
	}
	return nil
}

// mayDial reports whether an address is public or in an allowed network.
func (a Allow) mayDial(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return a.contains(addr) || isPublic(addr)
}

// isPublic reports whether an address belongs to the public Internet. In IPv6 that is only
// 2000::/3, which excludes most forms that contain an IPv4 address. The special-purpose networks of
// IANA's registries are not public.
func isPublic(addr netip.Addr) bool {
	internet := netip.MustParsePrefix("2000::/3")
	return addr.IsGlobalUnicast() && !addr.IsPrivate() &&
		(addr.Is4() || internet.Contains(addr)) &&
		!slices.ContainsFunc(special, func(n netip.Prefix) bool { return n.Contains(addr) })
}

// special are the networks of IANA's registries that netip.Addr has no method for.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),   // carrier-grade NAT
	netip.MustParsePrefix("192.0.0.0/24"),    // protocol assignments
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("192.88.99.0/24"),  // relays of 6to4
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("240.0.0.0/4"),     // reserved, and broadcast
	netip.MustParsePrefix("2001::/23"),       // protocol assignments, Teredo
	netip.MustParsePrefix("2001:db8::/32"),   // documentation
	netip.MustParsePrefix("2002::/16"),       // 6to4
	netip.MustParsePrefix("3fff::/20"),       // documentation
}
