package servers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
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
	tb.Cleanup(func() { assert.NoError(tb, own.Close()) }) // after the cleanup that shows the log
	return shared(tb, own, name, start)
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
