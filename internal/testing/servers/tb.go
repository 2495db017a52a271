package servers

import (
	"context"
	"errors"
	"fmt"
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

// forTest starts a server for one test. Cleanup stops it and prints its log if the test failed.
func forTest[S handle](tb testing.TB, name string, start starter[S]) S {
	tb.Helper()
	own := NewSuite()
	tb.Cleanup(func() { // after the cleanup that shows the log
		if err := own.Close(); err != nil {
			tb.Errorf("servers: %v", err)
		}
	})
	return shared(tb, own, name, start)
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
