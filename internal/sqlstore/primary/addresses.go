package primary

import (
	"net"
	"strings"

	"github.com/go-sql-driver/mysql"
)

const defaultPort = "3306"

// Addresses returns the host:port of each server in cfg, so two for "h1:3306,h2:3306". The port is
// 3306 where a list omits it. The address of a Unix socket is returned unchanged.
func Addresses(cfg *mysql.Config) []string {
	list := cfg.Addr
	for wrapped := true; wrapped; { // each formatting and parsing of a DSN wraps it once more
		list, wrapped = unwrap(list)
	}
	if cfg.Net != "tcp" || !strings.Contains(list, ",") {
		return []string{cfg.Addr}
	}
	var addrs []string
	for addr := range strings.SplitSeq(list, ",") {
		addr = strings.TrimSpace(addr)
		// An address without a port is valid, because one server's DSN may omit it too.
		if _, _, err := net.SplitHostPort(addr); err != nil && addr != "" {
			addr = net.JoinHostPort(strings.Trim(addr, "[]"), defaultPort)
		}
		if addr != "" {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// unwrap removes what the driver adds to a list that it takes for one host:
// "[h1:3306,h2:3306]:3306". ok is false where the brackets do not enclose the whole list.
func unwrap(list string) (inner string, ok bool) {
	const end = "]:" + defaultPort
	if !strings.HasPrefix(list, "[") || !strings.HasSuffix(list, end) ||
		!strings.Contains(list, ",") {
		return list, false
	}
	inner = strings.TrimSuffix(list[1:], end)
	if i := strings.IndexAny(inner, "[]"); i >= 0 && inner[i] == ']' {
		return list, false // the first bracket belongs to an IPv6 address
	}
	return inner, true
}
