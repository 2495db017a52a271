package sqlstore

import (
	"net"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// defaultPort is MySQL's.
const defaultPort = "3306"

// addrsOf lists the servers of an address "h1:3306,h2:3306", which the driver knows as one with a strange name.
func addrsOf(cfg *mysql.Config) []string {
	list := cfg.Addr
	for { // it is wrapped anew each time that it is read
		inner, wrapped := unwrap(list)
		if !wrapped {
			break
		}
		list = inner
	}
	if cfg.Net != "tcp" || !strings.Contains(list, ",") {
		return []string{cfg.Addr}
	}
	var addrs []string
	for addr := range strings.SplitSeq(list, ",") {
		addr = strings.TrimSpace(addr)
		if _, _, err := net.SplitHostPort(addr); err != nil && addr != "" {
			addr = net.JoinHostPort(strings.Trim(addr, "[]"), defaultPort)
		}
		if addr != "" {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// unwrap undoes what the driver makes of a list: "[h1:3306,h2:3306]:3306", its outer brackets round all of it.
func unwrap(list string) (string, bool) {
	const end = "]:" + defaultPort
	if !strings.HasPrefix(list, "[") || !strings.HasSuffix(list, end) || !strings.Contains(list, ",") {
		return list, false
	}
	inner := strings.TrimSuffix(list[1:], end)
	depth := 0
	for _, c := range inner {
		switch c {
		case '[':
			depth++
		case ']':
			depth--
		}
		if depth < 0 { // the first bracket is an IPv6 address's own
			return list, false
		}
	}
	return inner, true
}
