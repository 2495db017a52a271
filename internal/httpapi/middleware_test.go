package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/seckill"
)

func TestResponses_HaveOneShape(t *testing.T) {
	h := newFixture(t)
	for _, r := range []reply{h.ask(nil, "GET", "/livez", ""), h.ask(nil, "GET", "/nope", ""), h.ask(nil, "GET", "/orders", "")} {
		require.Equal(t, "application/json; charset=utf-8", r.Header.Get("Content-Type"))
		require.Equal(t, r.Status, r.Code)
		require.NotEmpty(t, r.Message)
		require.Equal(t, "{", string(r.Data[:1]), "data is always an object")
		require.Equal(t, r.Header.Get("X-Request-ID"), r.RequestID)
		require.Equal(t, "nosniff", r.Header.Get("X-Content-Type-Options"))
		require.Contains(t, r.Header.Get("Content-Security-Policy"), "default-src 'none'")
	}
	require.Equal(t, "Bearer", h.ask(nil, "GET", "/orders", "").Header.Get("WWW-Authenticate"))
}

func TestRequestID_IsKeptWhereItIsSafe(t *testing.T) {
	h := newFixture(t)
	for _, id := range []string{"a", "Abc-1.2_3", strings.Repeat("x", 64)} {
		require.Equal(t, id, h.ask(nil, "GET", "/livez", "", "X-Request-ID", id).RequestID)
	}
	for _, id := range []string{strings.Repeat("x", 65), "a b", "ä", "a\"b", "<x>", "a/b"} {
		r := h.ask(nil, "GET", "/livez", "", "X-Request-ID", id)
		require.NotEqual(t, id, r.RequestID)
		require.Regexp(t, `^[0-9A-Za-z._-]{16,64}$`, r.RequestID)
	}
	r := h.ask(nil, "GET", "/livez", "", "X-Request-ID", "a", "X-Request-ID", "b")
	require.Len(t, r.RequestID, 26, "two are none")
}

func TestNoMethod_NamesTheAllowedMethods(t *testing.T) {
	h := newFixture(t)
	r := h.ask(nil, "DELETE", "/randomPath", "")
	require.Equal(t, http.StatusMethodNotAllowed, r.Status)
	require.ElementsMatch(t, []string{"GET", "POST"}, strings.Split(r.Header.Get("Allow"), ", "))
	require.ElementsMatch(t, []string{"GET", "HEAD"}, strings.Split(h.ask(nil, "POST", "/sales", "").Header.Get("Allow"), ", "))
}

// Every reason that a service may give has its status, and troubles say nothing of themselves.
func TestErrorMapping_CoversEveryReason(t *testing.T) {
	h := newFixture(t)
	h.sell(43)
	limited := seckill.NewError(seckill.RateLimited, "too many")
	limited.RetryAfter = 1001 * time.Millisecond
	reached := seckill.NewError(seckill.LimitReached, "no more")
	reached.Data = map[string]any{"orderSns": []string{"a"}}
	for name, c := range map[string]struct {
		err    error
		status int
		reason string
		code   int
		retry  string
		data   string
	}{
		"limited":         {limited, 429, "RATE_LIMITED", 429, "2", `{}`},
		"with own code":   {&httpapi.LimitError{Err: limited, Code: 888, Header: map[string]string{"RateLimit": `"x";r=0`}}, 429, "RATE_LIMITED", 888, "2", `{}`},
		"no time given":   {seckill.NewError(seckill.RateLimited, "x"), 429, "RATE_LIMITED", 429, "1", `{}`},
		"limit reached":   {reached, 409, "LIMIT_REACHED", 409, "", `{"orderSns":["a"]}`},
		"down":            {seckill.NewUnavailable("redis is away", errors.New("dial 10.0.0.1")), 503, "UNAVAILABLE", 503, "1", `{}`},
		"wrapped":         {fmt.Errorf("place: %w", seckill.NewError(seckill.Ended, "over")), 409, "ENDED", 409, "", `{}`},
		"deadline":        {fmt.Errorf("redis 10.0.0.1: %w", context.DeadlineExceeded), 503, "UNAVAILABLE", 503, "1", `{}`},
		"cancelled":       {context.Canceled, 503, "UNAVAILABLE", 503, "1", `{}`},
		"anything else":   {errors.New("SELECT secret FROM 10.0.0.1"), 500, "INTERNAL", 500, "", `{}`},
		"unknown reason":  {seckill.NewError("NO_SUCH_REASON", "x"), 500, "INTERNAL", 500, "", `{}`},
		"a field's place": {seckill.NewFieldError("a.b", "is bad"), 400, "BAD_REQUEST", 400, "", `{"field":"a.b"}`},
		"not UTF-8":       {seckill.NewError(seckill.Conflict, "\xff"), 409, "CONFLICT", 409, "", `{}`},
	} {
		h.limit = c.err
		r := h.as(buyer(), "POST", "/randomPath?goodsId=43", "")
		require.Equal(t, c.status, r.Status, name)
		require.Equal(t, c.reason, r.Reason, name)
		require.Equal(t, c.code, r.Code, name)
		require.Equal(t, c.retry, r.Header.Get("Retry-After"), name)
		require.JSONEq(t, c.data, string(r.Data), name)
		require.NotContains(t, r.raw, "10.0.0.1", name)
		require.Equal(t, "/randomPath "+c.reason, h.metrics.last(), name)
	}
	h.limit = &httpapi.LimitError{Err: limited, Header: map[string]string{"RateLimit": `"x";r=0;t=2`}}
	require.Equal(t, `"x";r=0;t=2`, h.as(buyer(), "POST", "/randomPath?goodsId=43", "").Header.Get("RateLimit"))
}

func TestMiddleware_AnswersPanics(t *testing.T) {
	h := newFixture(t)
	f := h.fixture()
	h.inPlace = func() { panic("a secret of ours") }
	r := h.as(buyer(), "POST", "/"+f.Path+"/decrStock?goodsId="+text(longID), "", "X-Request-ID", "find-me")
	require.Equal(t, http.StatusInternalServerError, r.Status)
	require.Equal(t, "INTERNAL", r.Reason)
	require.NotContains(t, r.raw, "secret")
	require.NotContains(t, r.raw, "goroutine")
	require.Contains(t, h.log.String(), "a secret of ours")
	require.Equal(t, "/:randomPath/decrStock INTERNAL", h.metrics.last())
}

func TestReadyz_ReportsParts(t *testing.T) {
	h := newFixture(t)
	r := h.ask(nil, "GET", "/readyz?x=1", "")
	require.JSONEq(t, `{"ready":true,"parts":{"redis":"ok","rabbitmq":"down"}}`, string(r.Data))
	h.ready = false
	r = h.ask(nil, "GET", "/readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, r.Status)
	require.Contains(t, string(r.Data), `"ready":false`)
	require.Equal(t, http.StatusOK, h.ask(nil, "GET", "/livez", "").Status)
}

// raw sends bytes as they are, and reads what comes back until the connection is closed.
func (h *fixture) raw(request string) (string, error) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return "", err
	}
	all, err := io.ReadAll(conn)
	return string(all), err
}

func TestServer_DisconnectsSlowRequests(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	token, err := h.tokens.Sign(buyer(), time.Hour)
	require.NoError(t, err)
	post := "POST /randomPath HTTP/1.1\r\nHost: x\r\n"
	timestamp, signature := h.signer.Sign(nil)
	signed := "POST /payments/callback HTTP/1.1\r\nHost: x\r\nX-Seckill-Timestamp: " + timestamp + "\r\nX-Seckill-Signature: " + signature + "\r\n"
	var all sync.WaitGroup
	for name, c := range map[string]struct{ request, answer string }{
		"slow body":               {post + "Authorization: Bearer " + token + "\r\nContent-Length: 100\r\n\r\n{", `"data":{"field":"body"}`},
		"slow body, chunked":      {post + "Authorization: Bearer " + token + "\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", `"data":{"field":"body"}`},
		"slow body without token": {post + "Content-Length: 100\r\n\r\n{", `"reason":"UNAUTHENTICATED"`},
		"slow body of a probe":    {"GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", `"reason":"OK"`},
		"slow body of a payment":  {signed + "Content-Length: 100\r\n\r\n{", `"data":{"field":"body"}`},
		"slow header":             {"GET /sales HTTP/1.1\r\nHost: x\r\nX-A: ", ""},
	} {
		all.Go(func() {
			answer, err := h.raw(c.request)
			assert.NoError(t, err, "%s: the connection was not closed: %s", name, answer)
			assert.Contains(t, answer, c.answer, name)
		})
	}
	all.Wait()
}

// A byte now and then does not keep a connection open: the time is for the whole of the request.
func TestServer_DisconnectsSlowBodies(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	var all sync.WaitGroup
	for name, head := range map[string]string{
		"header": "GET /sales HTTP/1.1\r\nHost: x\r\nX-A: ",
		"body":   "POST /randomPath HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + h.token(buyer()) + "\r\nContent-Length: 1000\r\n\r\n{",
	} {
		all.Go(func() {
			conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
			if !assert.NoError(t, err) {
				return
			}
			defer func() { _ = conn.Close() }()
			assert.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
			_, err = io.WriteString(conn, head)
			assert.NoError(t, err)
			go func() { // until the connection is closed, by the server or by this test
				for err := error(nil); err == nil; time.Sleep(100 * time.Millisecond) {
					_, err = io.WriteString(conn, " ")
				}
			}()
			_, err = io.ReadAll(conn)
			assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the %s went on", name)
		})
	}
	all.Wait()
}

// A call may wait for its permit longer than a request may take to arrive.
func TestServer_AllowsLongWaitsForAPermit(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.sell(43)
	h.wait = 4500 * time.Millisecond
	r := h.as(buyer(), "POST", "/randomPath", `{"goodsId":43}`)
	require.Equal(t, http.StatusOK, r.Status, r.raw)
}

func TestServer_AnswersOddRequestLines(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	for line, want := range map[string]string{
		"OPTIONS * HTTP/1.1":                 "404 Not Found",
		"GET http://evil.example HTTP/1.1":   "404 Not Found",
		"GET http://e/sales HTTP/1.1":        "200 OK",
		"CONNECT evil.example:443 HTTP/1.1":  "404 Not Found",
		"GET /sales/1%0d%0aX: HTTP/1.1":      "400 Bad Request",
		"GET /sales?limit=1#x HTTP/1.1":      "400 Bad Request",
		"GET /%zz HTTP/1.1":                  "400 Bad Request",
		"GET /sales/../admin/sales HTTP/1.1": "404 Not Found",
		"GET /sales HTTP/9.9":                "505 HTTP Version Not Supported", // net/http's own answer
	} {
		answer, err := h.raw(line + "\r\nHost: x\r\nConnection: close\r\n\r\n")
		require.NoError(t, err, line)
		require.True(t, strings.HasPrefix(answer, "HTTP/1.1 "+want), "%s: %s", line, answer)
	}
	answer, err := h.raw("GET /sales HTTP/1.1\r\nHost: x\r\nX-A: " + strings.Repeat("x", 32<<10) + "\r\nConnection: close\r\n\r\n")
	require.NoError(t, err)
	require.Contains(t, answer, "431 Request Header Fields Too Large")
}
