// Package rawconn makes TCP connections whose system calls Go's scheduler does not observe.
//
// Package net announces each read and write to the scheduler, because a call might block its
// thread. If the program was idle before, that wakes the runtime's monitor thread, which then
// checks for blocked threads every 20 µs. A program that waits for the network thousands of times a
// second spends a tenth to a quarter of its processor time there. Sockets do not block, so the
// announcement is useless: a call that cannot go on returns at once, and the goroutine then waits
// in the network poller as usual. See ADR 101.
package rawconn

import (
	"context"
	"net"
)

// Dial connects to an address.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// With returns a function that connects by dial. TCP connections have cheaper reads and writes on
// Linux; their bytes, deadlines and errors stay the same. Others, such as those of TLS, stay as
// they are.
func With(dial Dial) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if tcp, ok := c.(*net.TCPConn); ok && err == nil {
			return New(tcp), nil
		}
		return c, err
	}
}
