package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// handle is the part of a server that the test helpers use.
type handle interface {
	discard() error
	Log() string
}

// starter starts a server with its data and log in a directory.
type starter[S handle] func(ctx context.Context, dir string) (S, error)

// startIn starts a server in a temporary directory. The path of a Unix socket must be short, so
// startIn does not use tb.TempDir, which contains the test's name. discard ends the server and
// deletes the directory.
func startIn[S handle](
	ctx context.Context, name string, start starter[S],
) (server S, discard func() error, err error) {
	dir, err := os.MkdirTemp("", "seckill-"+name+"-")
	if err != nil {
		return server, nil, err
	}
	if server, err = start(ctx, dir); err != nil {
		return server, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return server, func() error { return errors.Join(server.discard(), os.RemoveAll(dir)) }, nil
}

// forTest starts a server for one test. Cleanup stops it and prints its log if the test failed.
func forTest[S handle](tb testing.TB, name string, start starter[S]) S {
	tb.Helper()
	server, discard, err := startIn(tb.Context(), name, start)
	check(tb, err)
	tb.Cleanup(func() {
		showLog(tb, name, server)
		if err := discard(); err != nil {
			tb.Errorf("servers: %v", err)
		}
	})
	return server
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("servers: %v", err)
	}
}

// showLog prints the end of the server's log if the test failed.
func showLog(tb testing.TB, name string, server handle) {
	tb.Helper()
	if tb.Failed() {
		tb.Logf("the end of %s's log:\n%s", name, server.Log())
	}
}

// discardAll kills several servers.
func discardAll[S handle](all []S) error {
	var problems []error
	for _, server := range all {
		problems = append(problems, server.discard())
	}
	return errors.Join(problems...)
}

// logsOf returns the end of every server's log.
func logsOf[S handle](all []S) string {
	var text strings.Builder
	for i, server := range all {
		fmt.Fprintf(&text, "-- node %d:\n%s\n", i, server.Log())
	}
	return text.String()
}
