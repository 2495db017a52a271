package httpapi

import (
	"bytes"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"flashsale.dev/seckill/internal/seckill"
)

// WithEnvelopes returns a listener for a Server. net/http answers a request that it cannot read
// itself, in plain text, and some with 501 or 505. On the listener's connections such an answer has
// the form of every other error.
func WithEnvelopes(l net.Listener) net.Listener { return envelopeListener{l} }

type envelopeListener struct{ net.Listener }

// Accept waits for a connection.
func (l envelopeListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		return envelopeConn{tcp}, err
	}
	return c, err
}

// envelopeConn embeds the type of the connection, so that net/http can still send files by it.
type envelopeConn struct{ *net.TCPConn }

// Write replaces an answer of net/http, which writes it in one call, and writes all else as it is.
func (c envelopeConn) Write(p []byte) (int, error) {
	message := protocolError(p)
	if message == "" {
		return c.TCPConn.Write(p)
	}
	return len(p), writeProtocolError(c.TCPConn, message)
}

// protocolError returns what is wrong with a request if p is the answer of net/http that rejects
// it; "" if p is anything else. Only net/http itself begins a response with these headers.
func protocolError(p []byte) string {
	const line = "HTTP/1.1 "
	if len(p) < len(line)+3 || p[len(line)] < '4' || !bytes.HasPrefix(p, []byte(line)) {
		return ""
	}
	head, _, _ := bytes.Cut(p, []byte("\r\n\r\n"))
	first, headers, _ := bytes.Cut(head, []byte("\r\n"))
	code := string(first[len(line) : len(line)+3])
	switch {
	case code == "417":
		return "Expect: the only expectation is 100-continue"
	case string(headers) != "Content-Type: text/plain; charset=utf-8\r\nConnection: close":
		return ""
	case code == "431":
		return "the request line and the headers are larger than " +
			strconv.Itoa(maxHeaderBytes) + " bytes"
	case code == "501":
		return "Transfer-Encoding: only chunked is supported"
	case code == "505":
		return "the HTTP version is not supported; use HTTP/1.1"
	default:
		return "this is no valid HTTP request"
	}
}

// writeProtocolError writes a BAD_REQUEST and has the client close the connection.
func writeProtocolError(w io.Writer, message string) error {
	id := rand.Text()
	status := statusOf(seckill.BadRequest)
	body, err := appendEnvelope(nil, envelope{
		Code: status, Reason: seckill.BadRequest, Message: message, Data: struct{}{}, RequestID: id,
	})
	if err != nil {
		return err
	}
	response := http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: make(http.Header), Close: true,
		Body: io.NopCloser(strings.NewReader(string(body))), ContentLength: int64(len(body)),
	}
	setSecurityHeaders(response.Header, id)
	response.Header["Content-Type"] = jsonText
	return response.Write(w)
}
