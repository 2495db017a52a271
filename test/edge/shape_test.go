package edge

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/apicheck"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestRandomPath_WithoutGoodsIsRefusedAtOnce checks that the edge itself refuses a malformed goods
// id.
func TestRandomPath_WithoutGoodsIsRefusedAtOnce(t *testing.T) {
	api := newAPI(t)
	e := start(t, open(api.addr()))
	for _, query := range []string{
		"", "?", "?goodsId", "?goodsId=", "?goodsid=1", "?goodsId=0", "?goodsId=-1", "?goodsId=01",
		"?goodsId=1x", "?goodsId=1&goodsId=1",
		"?goodsId=9223372036854775808", "?goodsId=99999999999999999999", "?goodsId=%00",
		"?goodsId=1e3", "?goodsId=" + strings.Repeat("1", 4000),
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			a := e.ask(method, "/randomPath"+query, buyerHeaders(t, 1)...)
			require.Equal(t, http.StatusBadRequest, a.Status, "%s: %s", query, a.Body)
			require.Equal(t, "BAD_REQUEST", a.Reason)
			require.Equal(t, "goodsId", badField(t, a))
			shaped(t, a)
		}
	}
	require.Zero(t, api.heard.Load())
	require.Equal(t, "OK", e.path("9223372036854775807").Reason)
}

// badField returns the field that an answer names, once in data.field and once in data.errors.
func badField(t *testing.T, a answer) string {
	t.Helper()
	var data struct {
		Field  string
		Errors []struct{ Field, Message string }
	}
	require.NoError(t, json.Unmarshal(a.Data, &data))
	require.Len(t, data.Errors, 1)
	require.Equal(t, data.Field, data.Errors[0].Field)
	require.NotEmpty(t, data.Errors[0].Message)
	return data.Field
}

// TestEdge_RefusalsOfNginxHaveTheShapeToo checks that errors of nginx itself have the contract's
// shape.
func TestEdge_RefusalsOfNginxHaveTheShapeToo(t *testing.T) {
	api := newAPI(t)
	e := start(t, open(api.addr()))
	req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, e.base+"/admin/sales",
		strings.NewReader(strings.Repeat("x", 200<<10))))(t)
	large := readAnswer(t, req)
	require.Equal(t, "body", badField(t, large))
	req = must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost,
		e.base+"/payments/webhook", strings.NewReader(strings.Repeat("x", 200<<10))))(t)
	require.Equal(t, 200, readAnswer(t, req).Status, "the API decides on a dispute's evidence")
	tooLong := e.ask(http.MethodGet, "/sales", "X-Long", strings.Repeat("x", 40<<10))
	trace := e.ask(http.MethodTrace, "/sales")
	encoding := e.raw("GET /sales HTTP/1.1\r\nHost: edge\r\nTransfer-Encoding: gzip\r\n\r\n")
	for _, a := range []answer{large, tooLong, trace, encoding} {
		require.Equal(t, []any{400, "BAD_REQUEST"}, []any{a.Status, a.Reason}, a.Body)
		shaped(t, a)
	}

	api.Close()
	a := e.ask(http.MethodGet, "/sales")
	require.Equal(t, []any{503, "UNAVAILABLE", "1"},
		[]any{a.Status, a.Reason, a.Header.Get("Retry-After")}, a.Body)
	shaped(t, a)
}

// TestEdge_RefusalsOfRequestLinesHaveTheShapeToo checks requests of which nginx reads no URI, or no
// method or version that it knows.
func TestEdge_RefusalsOfRequestLinesHaveTheShapeToo(t *testing.T) {
	api := newAPI(t)
	e := start(t, open(api.addr()))
	for _, line := range []string{
		"GET /../sales HTTP/1.1", "GET /sales%00 HTTP/1.1", "GET /sales%zz HTTP/1.1",
		"OPTIONS * HTTP/1.1", "CONNECT edge:80 HTTP/1.1", "get /sales HTTP/1.1",
		"GET /sales HTTP/2.0", "GET /sales?" + strings.Repeat("x", 9000) + " HTTP/1.1",
		"\x16\x03\x01",
	} {
		a := e.raw(line + "\r\nHost: edge\r\n\r\n")
		require.Equal(t, []any{400, "BAD_REQUEST"}, []any{a.Status, a.Reason},
			"%s: %s", line, a.Body)
		require.Equal(t, "request", badField(t, a), line)
		shaped(t, a)
	}
	require.Zero(t, api.heard.Load())
}

// TestEdge_PassesRequestsWithoutHost checks that the API gets a Host where the client sends none.
func TestEdge_PassesRequestsWithoutHost(t *testing.T) {
	api := newAPI(t)
	e := start(t, open(api.addr()))
	require.Equal(t, "OK", e.raw("GET /sales HTTP/1.0\r\n\r\n").Reason)
}

// raw sends a request as it is written, because Go's client refuses to send a malformed one.
func (e *edge) raw(request string) answer {
	var dialer net.Dialer
	conn := must.Get(dialer.DialContext(e.t.Context(), "tcp", e.nginx.Addr()))(e.t)
	defer conn.Close()
	require.NoError(e.t, conn.SetDeadline(time.Now().Add(patience)))
	must.Get(io.WriteString(conn, request))(e.t)
	response := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(e.t)
	return must.Get(apicheck.ReadReply(response))(e.t)
}

// TestAssets_OfAnotherReleaseComeFromItsNode checks that a page finds its files while nodes of two
// releases run.
func TestAssets_OfAnotherReleaseComeFromItsNode(t *testing.T) {
	var all strings.Builder
	for i := range 4 {
		node, own := newAPI(t), fmt.Sprintf("/assets/%d/shop.js", i/2)
		node.says(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != own {
				saying(http.StatusNotFound, "NOT_FOUND", `{}`)(w, r)
				return
			}
			saying(http.StatusOK, "OK", `{}`)(w, r)
		})
		fmt.Fprintf(&all, "server %s max_fails=0; ", node.addr())
	}
	e := start(t, open("").with("upstream.conf", "upstream api { "+all.String()+"}\n"))
	for range 4 {
		require.Equal(t, http.StatusOK, e.ask("GET", "/assets/0/shop.js").Status)
		require.Equal(t, http.StatusOK, e.ask("GET", "/assets/1/shop.js").Status)
		require.Equal(t, http.StatusNotFound, e.ask("GET", "/assets/2/shop.js").Status)
	}
}

// TestRequestID_OfTheClientIsKeptWhereItIsPlain checks that the edge replaces a client's request id
// that is malformed.
func TestRequestID_OfTheClientIsKeptWhereItIsPlain(t *testing.T) {
	api := newAPI(t)
	e := start(t, open(api.addr()))
	for sent, kept := range map[string]bool{
		"mine-1_2.3": true, "Root=1-67891233-abcdef": true, "base64+/=[]~": true,
		strings.Repeat("x", 128): true, strings.Repeat("x", 129): false,
		`a"b`: false, `a\b`: false, "a b": false, "": false,
	} {
		a := e.ask(http.MethodGet, "/randomPath", "X-Request-ID", sent)
		require.Equal(t, kept, a.RequestID == sent, sent)
		e.path("1", "X-Request-ID", sent)
		require.Equal(t, kept, api.lastHeader().Get("X-Request-Id") == sent)
		require.Regexp(t, `^[!-~]{1,128}$`, api.lastHeader().Get("X-Request-Id"))
	}
}

// TestEdge_LeavesTheAPIsAnswersAlone checks that the API's errors pass through the edge unchanged.
func TestEdge_LeavesTheAPIsAnswersAlone(t *testing.T) {
	api := newAPI(t)
	e := start(t, open(api.addr()))
	for _, status := range []int{400, 401, 404, 413, 429, 500, 502, 503} {
		api.says(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "7")
			saying(status, "OF_THE_API", `{"a":1}`)(w, r)
		})
		for _, path := range []string{"/sales", "/randomPath?goodsId=1"} {
			a := e.ask(http.MethodGet, path)
			require.Equal(t, []any{status, "OF_THE_API", "7"},
				[]any{a.Status, a.Reason, a.Header.Get("Retry-After")})
		}
	}
}

// TestEdge_PagesOfAnotherSiteReadItsAnswers checks that the edge's answers have the headers of the
// API's for such a page (CORS).
func TestEdge_PagesOfAnotherSiteReadItsAnswers(t *testing.T) {
	const site = "https://shop.example.org"
	api := installation.StartProgram(t, "standalone", "SECKILL_HTTP_ADDR",
		[]string{"SECKILL_CORS_ORIGINS=" + site}, "-data", t.TempDir())
	e := start(t, open(api.Addr).with("settings.lua",
		strings.Replace(noShared, "shared =", `origins = { "`+site+`" }, shared =`, 1)))
	ofTheAPI := e.ask(http.MethodGet, "/sales", "Origin", site)
	require.Equal(t, site, ofTheAPI.Header.Get("Access-Control-Allow-Origin"))
	ofTheEdge := e.ask(http.MethodGet, "/randomPath", "Origin", site)
	shaped(t, ofTheEdge)
	for _, name := range []string{
		"Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Vary",
	} {
		require.Equal(t, ofTheAPI.Header.Values(name), ofTheEdge.Header.Values(name), name)
	}
	for _, other := range []string{site + ".evil.example", "null", ""} {
		a := e.ask(http.MethodGet, "/randomPath", "Origin", other)
		require.Empty(t, a.Header.Values("Access-Control-Allow-Origin"), other)
		require.Equal(t, "Origin", a.Header.Get("Vary"))
	}
}

// TestLog_KeepsNoSecrets checks that the log contains neither the random path nor the token of a
// purchase.
func TestLog_KeepsNoSecrets(t *testing.T) {
	e := start(t, open(newAPI(t).addr()))
	path := strings.Repeat("0a", 16)
	token := buyerHeaders(t, 1)
	e.ask(http.MethodPost, "/"+path+"/decrStock?goodsId=1", token...)
	require.Eventually(t, func() bool {
		return strings.Contains(e.nginx.Log(), `"route":"/:randomPath/decrStock"`)
	}, patience, tick)
	require.NotContains(t, e.nginx.Log(), path)
	require.NotContains(t, e.nginx.Log(), token[1])
}
