// Package testlog is a log that a test reads while a program writes it.
package testlog

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Lines has the records of a log, and room for those that the test has not read yet.
type Lines chan string

// New returns an empty log.
func New() Lines { return make(Lines, 1000) }

// Write sends a record.
func (l Lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// Next waits for a record, for a minute at most.
func (l Lines) Next(t *testing.T) string {
	t.Helper()
	select {
	case line := <-l:
		return line
	case <-time.After(time.Minute):
		require.Fail(t, "nothing is logged")
		return ""
	}
}
