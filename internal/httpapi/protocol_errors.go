package httpapi

import (
	"bytes"
	"crypto/rand"
	"io"
	"net/http"
	"strconv"

	"flashsale.dev/seckill/internal/apierror"
)

// ProtocolError returns the answer that replaces p, if p is the answer of net/http to a request
// that it cannot read; else nil. net/http writes such answers in plain text and in one call, some
// with 501 or 505. The replacement is a BAD_REQUEST in the form of every other error, and closes
// the connection.
func ProtocolError(p []byte) []byte {
	message := protocolError(p)
	if message == "" {
		return nil
	}
	id, status := rand.Text(), statusOf(apierror.BadRequest)
	body, err := appendEnvelope(nil, envelope{
		Code: status, Reason: apierror.BadRequest, Message: message, RequestID: id,
	})
	if err != nil {
		return nil
	}
	response := http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: make(http.Header), Close: true,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
	setSecurityHeaders(response.Header, id)
	response.Header["Content-Type"] = jsonText
	var b bytes.Buffer
	if err := response.Write(&b); err != nil {
		return nil
	}
	return b.Bytes()
}

// protocolError returns what is wrong with a request if p is the answer of net/http that rejects
// it; "" if p is anything else. p may be a part of a body, and users may choose the text at its
// start. So p must be a whole answer, whose body repeats its status or is a fixed text.
func protocolError(p []byte) string {
	const line = "HTTP/1.1 "
	if len(p) < len(line)+3 || p[len(line)] < '4' || !bytes.HasPrefix(p, []byte(line)) {
		return ""
	}
	head, body, _ := bytes.Cut(p[len(line):], []byte("\r\n\r\n"))
	status, headers, _ := bytes.Cut(head, []byte("\r\n"))
	code := string(status[:3])
	switch {
	case string(status) == "417 Expectation Failed" && len(body) == 0:
		return "Expect: the only expectation is 100-continue"
	case string(headers) != "Content-Type: text/plain; charset=utf-8\r\nConnection: close",
		!bytes.Equal(body, status) && string(body) != "Unsupported transfer encoding":
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
