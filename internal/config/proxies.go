package config

import (
	"fmt"
	"net/netip"
)

// Proxies are the networks whose X-Forwarded-For header the API trusts.
type Proxies []netip.Prefix

// UnmarshalText reads a comma list of CIDRs and addresses. An address is a network of one host. A
// list that trusts a network too many lets callers forge their addresses, so anything unclear is an
// error.
func (p *Proxies) UnmarshalText(text []byte) error {
	*p = nil
	for _, s := range split(string(text)) {
		if s == "" {
			continue
		}
		prefix, err := parsePrefix(s)
		if err != nil {
			return fmt.Errorf("%q is neither an address nor a CIDR", s)
		}
		*p = append(*p, prefix)
	}
	return nil
}

func parsePrefix(s string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(s); err == nil {
		return addr.Prefix(addr.BitLen())
	}
	return netip.ParsePrefix(s)
}
