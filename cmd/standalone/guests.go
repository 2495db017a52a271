package main

import (
	"net"

	"flashsale.dev/seckill/internal/seckill"
)

// guestsAt returns the users that sign in without a password, or why there are none. It allows them
// on a loopback address without a proxy, or where the operator sets -guests.
func guestsAt(addr net.Addr, proxied, wanted bool) (guests []seckill.Actor, off string) {
	tcp, ok := addr.(*net.TCPAddr)
	switch {
	case wanted:
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
