package config

import (
	"fmt"
	"net/netip"
	"strings"
)

// Proxies are networks whose word is taken for where a request came from.
type Proxies []netip.Prefix

// UnmarshalText reads a comma list of CIDRs and of addresses, each of which stands for itself alone.
func (p *Proxies) UnmarshalText(text []byte) error {
	*p = nil
	for s := range strings.SplitSeq(string(text), ",") {
		s = strings.TrimSpace(s)
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
