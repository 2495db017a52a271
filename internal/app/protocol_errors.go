package app

import (
	"errors"
	"log/slog"
	"net"

	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/rawconn"
)

// envelopeListener makes net/http's own error answers, such as one to a malformed request, have the
// JSON shape of the API's errors.
type envelopeListener struct {
	net.Listener
	log *slog.Logger
}

// Accept waits for a connection. It logs a failure, which net/http retries: a process without files
// left refuses every caller, and its connections to the servers stay well.
func (l envelopeListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		l.log.Warn("cannot accept connections; if too many files are open, raise ulimit -n",
			"addr", l.Addr().String(), "err", err)
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		return envelopeConn{rawconn.New(tcp)}, nil
	}
	return c, err
}

// envelopeConn embeds the type of the connection, so that net/http can still close one direction of
// it.
type envelopeConn struct{ *rawconn.Conn }

// Write replaces an answer of net/http, which writes it in one call, and writes all else as it is.
func (c envelopeConn) Write(p []byte) (int, error) {
	answer := httpapi.ProtocolError(p)
	if answer == nil {
		return c.Conn.Write(p)
	}
	_, err := c.Conn.Write(answer)
	return len(p), err
}
