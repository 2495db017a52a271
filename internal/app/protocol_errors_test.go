package app

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/testlog"
)

// TestServe_ShapesWhatNetHTTPRejects sends requests that net/http answers before any
// handler. Each answer is a 400 with the envelope. Answers of handlers stay as they are.
func TestServe_ShapesWhatNetHTTPRejects(t *testing.T) {
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	server := httpapi.Server(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotImplemented)
		_, _ = io.WriteString(w, "a handler's own")
	}), "", slog.New(slog.DiscardHandler))
	go func() { _ = server.Serve(envelopeListener{listener, slog.New(slog.DiscardHandler)}) }()
	t.Cleanup(func() {
		_ = server.Close()
		// net/http lingers for 500 ms where headers are too large
		time.Sleep(600 * time.Millisecond)
	})

	ask := func(t *testing.T, request string) (*http.Response, string) {
		c := must.Get(net.Dial("tcp", listener.Addr().String()))(t)
		defer c.Close()
		must.Get(io.WriteString(c, request))(t)
		res := must.Get(http.ReadResponse(bufio.NewReader(c), nil))(t)
		defer res.Body.Close()
		return res, string(must.Get(io.ReadAll(res.Body))(t))
	}
	const host = "Host: x\r\n"
	for name, c := range map[string]struct{ request, message string }{
		"transfer encoding": {
			"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip\r\n\r\n", "only chunked",
		},
		"version":   {"GET / HTTP/3.0\r\n" + host + "\r\n", "the HTTP version"},
		"escape":    {"GET /%zz HTTP/1.1\r\n" + host + "\r\n", "no valid HTTP request"},
		"no host":   {"GET / HTTP/1.1\r\n\r\n", "no valid HTTP request"},
		"two hosts": {"GET / HTTP/1.1\r\n" + host + host + "\r\n", "no valid HTTP request"},
		"name of a header": {
			"GET / HTTP/1.1\r\n" + host + "a b: c\r\n\r\n", "no valid HTTP request",
		},
		"negative length": {
			"POST / HTTP/1.1\r\n" + host + "Content-Length: -1\r\n\r\n", "no valid HTTP",
		},
		"no HTTP":           {"hello\r\n\r\n", "no valid HTTP request"},
		"other expectation": {"GET / HTTP/1.1\r\n" + host + "Expect: x\r\n\r\n", "100-continue"},
		"large headers": {
			"GET / HTTP/1.1\r\n" + host + "Cookie: " + strings.Repeat("a", 30<<10) + "\r\n\r\n",
			"larger than 16384 bytes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			res, body := ask(t, c.request)
			require.Equal(t, 400, res.StatusCode)
			require.Equal(t, "application/json; charset=utf-8", res.Header.Get("Content-Type"))
			require.Equal(t, "nosniff", res.Header.Get("X-Content-Type-Options"))
			require.True(t, res.Close)
			var got map[string]any
			require.NoError(t, json.Unmarshal([]byte(body), &got), body)
			require.Contains(t, got["message"], c.message)
			require.Equal(t, res.Header.Get("X-Request-Id"), got["requestId"])
			delete(got, "message")
			delete(got, "requestId")
			require.Equal(t, map[string]any{
				"code": 400.0, "reason": "BAD_REQUEST", "data": map[string]any{},
			}, got)
		})
	}
	res, body := ask(t, "GET / HTTP/1.1\r\n"+host+"\r\n")
	require.Equal(t, []any{501, "a handler's own"}, []any{res.StatusCode, body})
}

// TestServe_LeavesBodiesAsTheyAre answers with texts of users that look like answers of net/http. A
// large body is written in parts, each of which may begin with such a text.
func TestServe_LeavesBodiesAsTheyAre(t *testing.T) {
	const headers = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
	for _, text := range []string{
		"HTTP/1.1 417 ", "HTTP/1.1 417 Expectation Failed\r\n\r\n", "HTTP/1.1 400 Bad" + headers,
	} {
		listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		var body string
		server := httpapi.Server(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, body)
		}), "", slog.New(slog.DiscardHandler))
		go func() { _ = server.Serve(envelopeListener{listener, slog.New(slog.DiscardHandler)}) }()
		for i := range len(text) { // one of them puts the text at the start of a part
			body = strings.Repeat("x", i) + strings.Repeat(text, 20_000/len(text)) + "end"
			res := must.Get(http.Get("http://" + listener.Addr().String()))(t)
			got := must.Get(io.ReadAll(res.Body))(t)
			require.NoError(t, res.Body.Close())
			require.Equal(t, body, string(got))
		}
		http.DefaultClient.CloseIdleConnections()
		require.NoError(t, server.Close())
	}
}

// crowded is a listener of a process that has no file left for its first connection.
type crowded struct {
	net.Listener
	accepts int
}

func (c *crowded) Accept() (net.Conn, error) {
	if c.accepts++; c.accepts == 1 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return c.Listener.Accept()
}

// TestServe_LogsThatItCannotAccept checks that the log has the reason for which callers get no
// answer. The end of the server is no reason.
func TestServe_LogsThatItCannotAccept(t *testing.T) {
	listener, log := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t), testlog.New()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	serve := Serve(httpapi.Server(http.NotFoundHandler(), "", slog.New(slog.DiscardHandler)),
		&crowded{Listener: listener}, time.Minute, slog.New(slog.NewTextHandler(log, nil)))
	go func() { ended <- serve.Run(ctx) }()
	problem := log.Next(t)
	require.Contains(t, problem, "too many open files")
	require.Contains(t, problem, "raise ulimit -n")
	require.Contains(t, problem, listener.Addr().String())
	resp := must.Get(http.Get("http://" + listener.Addr().String()))(t)
	require.NoError(t, resp.Body.Close())
	http.DefaultClient.CloseIdleConnections()
	stop()
	require.NoError(t, <-ended)
	require.Empty(t, log)
}
