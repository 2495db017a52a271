package primary

import (
	"context"
	"database/sql/driver"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// answering is a connection to a server that answers the query of its role: 0 is writable.
type answering struct {
	Conn
	refusal int64
}

func (answering) ResetSession(context.Context) error { return nil }

func (a answering) QueryContext(
	context.Context, string, []driver.NamedValue,
) (driver.Rows, error) {
	return number(a.refusal), nil
}

// number is rows with one number.
type number int64

func (number) Columns() []string { return []string{"n"} }
func (number) Close() error      { return nil }

func (n number) Next(values []driver.Value) error {
	values[0] = int64(n)
	return nil
}

// TestConn_ClockSetBackKeepsNoRole sets the host's clock back by an hour: the last answers of the
// server seem to come in an hour. A server that was demoted since is asked again, and one that is
// writable again is used.
func TestConn_ClockSetBackKeepsNoRole(t *testing.T) {
	before := time.Now().Add(time.Hour).UnixNano()
	demoted := &server{}
	demoted.confirmedAt.Store(before)
	err := newConn(answering{refusal: 1}, demoted).ResetSession(t.Context())
	require.ErrorIs(t, err, driver.ErrBadConn)

	promoted := &server{}
	promoted.refusedAt.Store(before)
	promoted.confirmedAt.Store(time.Now().UnixNano())
	require.NoError(t, newConn(answering{}, promoted).ResetSession(t.Context()))
}
