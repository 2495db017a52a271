// Package netfault injects network faults between clients and servers.
//
// A Proxy forwards TCP connections from loopback addresses to servers. A test can cut it (as a
// pulled cable: both sides keep their connections and receive nothing), delay it, close its
// connections, block one source address, or stop everything at one certain request (Trap). It needs
// no privileges and no firewall rules. All methods of a Proxy are safe for concurrent use.
package netfault
