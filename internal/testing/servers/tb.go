package servers

import (
	"context"
	"os"
	"testing"
)

// handle is a server as the test helpers see it.
type handle interface {
	discard() error
	Log() string
}

// forTest starts a server in a directory of its own; at cleanup it is stopped, the directory removed, and the server's log shown where
// the test failed. The directory is not tb.TempDir: that carries the test's name, and a Unix socket's path is short.
func forTest[S handle](tb testing.TB, name string, start func(context.Context, string) (S, error)) S {
	tb.Helper()
	dir, err := os.MkdirTemp("", "seckill-"+name+"-")
	if err != nil {
		tb.Fatalf("servers: %v", err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	server, err := start(tb.Context(), dir)
	if err != nil {
		tb.Fatalf("servers: %v", err)
	}
	tb.Cleanup(func() { finish(tb, name, server) })
	return server
}

func finish(tb testing.TB, name string, server handle) {
	tb.Helper()
	if err := server.discard(); err != nil {
		tb.Errorf("servers: %v", err)
	}
	showLog(tb, name, server)
}

// showLog prints the end of the server's log where the test failed.
func showLog(tb testing.TB, name string, server handle) {
	tb.Helper()
	if tb.Failed() {
		tb.Logf("the end of %s's log:\n%s", name, server.Log())
	}
}
