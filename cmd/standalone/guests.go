package main

import (
	"net"

	"flashsale.dev/seckill/internal/seckill"
)

// guestsAt returns the users that may sign in without a password, or why there are none. There are
// none if the API listens beyond this machine or has trusted proxies, unless -guests is set.
func guestsAt(addr net.Addr, proxied, always bool) (guests []seckill.Actor, whyNone string) {
	tcp, ok := addr.(*net.TCPAddr)
	switch {
	case always:
	case !ok || !tcp.IP.IsLoopback():
		return nil, "the API listens beyond this machine; -guests allows it to every caller"
	case proxied:
		return nil, "the API has trusted proxies; -guests allows it to every caller"
	}
	return []seckill.Actor{
		{ID: merchantID, Role: seckill.Merchant, Name: "Mei"},
		{ID: "2", Role: seckill.Buyer, Name: "Ada", Phone: "+8613800000002"},
		{ID: "3", Role: seckill.Buyer, Name: "Bo", Phone: "+8613800000003"},
		{ID: "4", Role: seckill.Operator, Name: "Ops"},
	}, ""
}
