// Package netfault injects network faults between clients and servers.
//
// A Proxy forwards TCP connections from loopback addresses to servers. A test can cut it like a
// pulled cable: both sides keep their connections and receive no data. A test can also delay
// traffic, close connections, block one source address, or cut at one specific request (Trap). The
// package needs no privileges and no firewall rules. All methods of a Proxy are safe for concurrent
// use.
package netfault
