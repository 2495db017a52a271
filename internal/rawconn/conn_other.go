//go:build !linux

package rawconn

import "net"

// Conn is a TCP connection.
type Conn struct{ *net.TCPConn }

// New returns a connection that replaces c.
func New(c *net.TCPConn) *Conn { return &Conn{c} }
