package httpapi_test

import (
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/api"
	"flashsale.dev/seckill/internal/testing/must"
)

func TestResponses_HaveOneShape(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	for _, path := range []string{"/livez", "/nope", "/orders"} {
		r := h.ask("GET", path, "")
		require.Equal(t, "application/json; charset=utf-8", r.Header.Get("Content-Type"))
		require.Equal(t, r.Status, r.Code)
		require.NotEmpty(t, r.Message)
		require.Equal(t, "{", string(r.Data[:1]), "data is always an object")
		require.Equal(t, r.Header.Get("X-Request-ID"), r.RequestID)
		require.Equal(t, "nosniff", r.Header.Get("X-Content-Type-Options"))
		require.Contains(t, r.Header.Get("Content-Security-Policy"), "default-src 'none'")
	}
	require.Equal(t, "Bearer", h.ask("GET", "/orders", "").Header.Get("WWW-Authenticate"))
	r := h.want(200, h.ask("GET", "/readyz?x=1", ""))
	require.JSONEq(t, `{"ready":true,"parts":{"mysql":"ok","redis":"ok","rabbitmq":"ok"}}`,
		string(r.Data))
	res, document := h.do("GET", "/openapi.yaml", "")
	require.Equal(t, "application/yaml", res.Header.Get("Content-Type"))
	require.Equal(t, string(api.OpenAPI()), document)
}

func TestRequestID_IsKeptWhereItIsSafe(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	for _, id := range []string{
		"a", "Abc-1.2_3", "abc:def", "base64+/=", "Root=1-67891233-abcdef", `a"b\c`, "<x>",
		strings.Repeat("~", 128),
	} {
		require.Equal(t, id, h.ask("GET", "/livez", "", "X-Request-ID", id).RequestID)
	}
	for _, id := range []string{strings.Repeat("x", 129), "a b", "a\tb", "ä"} {
		r := h.ask("GET", "/livez", "", "X-Request-ID", id)
		require.NotEqual(t, id, r.RequestID)
		require.Regexp(t, `^[0-9A-Za-z._-]{16,64}$`, r.RequestID)
	}
	r := h.ask("GET", "/livez", "", "X-Request-ID", "a", "X-Request-ID", "b")
	require.Len(t, r.RequestID, 26, "the middleware discards duplicate request ids")
}

func TestNoMethod_NamesTheAllowedMethods(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	for call, allowed := range map[string][]string{
		"DELETE /randomPath": {"GET", "POST"}, "POST /sales": {"GET", "HEAD"},
	} {
		method, path, _ := strings.Cut(call, " ")
		r := h.want(405, h.ask(method, path, ""))
		require.ElementsMatch(t, allowed, strings.Split(r.Header.Get("Allow"), ", "))
	}
}

// dial opens a connection that fails if the server does not close it within half a minute.
func (h *fixture) dial() (net.Conn, error) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		return nil, err
	}
	return conn, conn.SetDeadline(time.Now().Add(30 * time.Second))
}

// raw sends bytes unchanged. It returns the response after the server closes the connection.
func (h *fixture) raw(request string) (string, error) {
	conn, err := h.dial()
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, request); err != nil {
		return "", err
	}
	all, err := io.ReadAll(conn)
	return string(all), err
}

// head returns the head of a request up to its last header field, without the empty line that ends
// it.
func head(line string, header ...string) string {
	return line + " HTTP/1.1\r\nHost: x\r\n" + strings.Join(header, "\r\n")
}

func TestServer_DisconnectsSlowRequests(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	const length, path = "Content-Length: 100\r\n\r\n{", "POST /randomPath"
	const badBody = `"data":{"field":"body",`
	token := "Authorization: " + h.bearer(buyer())
	timestamp, signature := h.Callbacks.Sign(nil)
	signed := "X-Seckill-Timestamp: " + timestamp + "\r\nX-Seckill-Signature: " + signature
	chunk := "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"
	var all sync.WaitGroup
	for name, c := range map[string]struct{ request, answer string }{
		"slow body":               {head(path, token, length), badBody},
		"slow body, chunked":      {head(path, token, chunk), badBody},
		"slow body without token": {head(path, length), `"reason":"UNAUTHENTICATED"`},
		"slow body of a probe":    {head("GET /livez", length), `"reason":"OK"`},
		"slow body of a payment":  {head("POST /payments/callback", signed, length), badBody},
		"slow header":             {head("GET /sales", "X-A: "), ""},
	} {
		all.Go(func() {
			answer, err := h.raw(c.request)
			assert.NoError(t, err, "%s: the connection was not closed: %s", name, answer)
			assert.Contains(t, answer, c.answer, name)
		})
	}
	all.Wait()
}

// TestServer_DisconnectsSlowBodies checks that the read limit covers the whole request. A client
// that sends single bytes at intervals cannot keep a connection open.
func TestServer_DisconnectsSlowBodies(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	var all sync.WaitGroup
	for name, begin := range map[string]string{
		"header": head("GET /sales", "X-A: "),
		"body": head("POST /randomPath", "Authorization: "+h.bearer(buyer()),
			"Content-Length: 1000\r\n\r\n{"),
	} {
		all.Go(func() {
			conn, err := h.dial()
			if !assert.NoError(t, err) {
				return
			}
			defer func() { _ = conn.Close() }()
			_, err = io.WriteString(conn, begin)
			assert.NoError(t, err)
			go func() { // ends when the server or this test closes the connection
				for err := error(nil); err == nil; time.Sleep(100 * time.Millisecond) {
					_, err = io.WriteString(conn, " ")
				}
			}()
			_, err = io.ReadAll(conn)
			assert.NotErrorIs(t, err, os.ErrDeadlineExceeded,
				"the server did not close the connection of the %s", name)
		})
	}
	all.Wait()
}

func TestServer_AnswersOddRequestLines(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	const end = "\r\nHost: x\r\nConnection: close\r\n\r\n"
	for line, want := range map[string]string{
		"OPTIONS * HTTP/1.1":                                         "404 Not Found",
		"GET http://evil.example HTTP/1.1":                           "404 Not Found",
		"GET http://e/sales HTTP/1.1":                                "200 OK",
		"CONNECT evil.example:443 HTTP/1.1":                          "404 Not Found",
		"GET /sales/1%0d%0aX: HTTP/1.1":                              "400 Bad Request",
		"GET /sales?limit=1#x HTTP/1.1":                              "400 Bad Request",
		"GET /%zz HTTP/1.1":                                          "400 Bad Request",
		"GET /sales/../admin/sales HTTP/1.1":                         "404 Not Found",
		"GET /sales HTTP/9.9":                                        "505 HTTP Version Not Supported",
		"GET /sales HTTP/1.1\r\nX-A: " + strings.Repeat("x", 32<<10): "431 Request Header Fields",
	} {
		answer := must.Get(h.raw(line+end))(t, line)
		require.True(t, strings.HasPrefix(answer, "HTTP/1.1 "+want), "%s: %s", line, answer)
	}
}
