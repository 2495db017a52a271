package primary

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"time"

	"github.com/go-sql-driver/mysql"
)

// MySQL's error numbers for a server without the group's table, and for an account that may not
// read it.
const (
	noSuchDatabase = 1049
	selectDenied   = 1142
	noSuchTable    = 1146
)

// Errors of a server that lost its role during a statement, which was not executed. Errors 1290,
// 1792 and 1836 (read-only) end the connection in the driver already (RejectReadOnly).
const (
	shuttingDown    = 1053
	offlineMode     = 3032
	commitRefused   = 3100 // by the group: the member is leaving it, or in the minority
	commitRolled    = 3101 // by the group, or by a new primary that had not certified it
	serverNotOnline = 3168
)

// isOneOf reports whether an error is one of these errors of MySQL.
func isOneOf(err error, numbers ...uint16) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && slices.Contains(numbers, e.Number)
}

// Conn has all methods of go-sql-driver's connections that database/sql uses.
type Conn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

// conn is a connection to a server that was writable at its last check.
type conn struct {
	Conn
	server *server
	lost   bool // the server lost its role: the pool must drop the connection
}

// newConn wraps a connection of go-sql-driver.
func newConn(inner driver.Conn, s *server) *conn {
	return &conn{Conn: inner.(Conn), server: s}
}

// check marks the connection as lost where err shows that the server lost its role.
func (c *conn) check(err error) error {
	c.lost = c.lost || isOneOf(err,
		shuttingDown, offlineMode, commitRefused, commitRolled, serverNotOnline)
	return err
}

// ExecContext executes a statement.
func (c *conn) ExecContext(
	ctx context.Context, query string, args []driver.NamedValue,
) (driver.Result, error) {
	res, err := c.Conn.ExecContext(ctx, query, args)
	return res, c.check(err)
}

// BeginTx begins a transaction.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	inner, err := c.Conn.BeginTx(ctx, opts)
	if err != nil {
		return nil, c.check(err)
	}
	return tx{inner, c}, nil
}

// IsValid reports whether the pool may keep the connection.
func (c *conn) IsValid() bool { return !c.lost && c.Conn.IsValid() }

// tx checks the commit as well, because a group refuses a transaction only then.
type tx struct {
	driver.Tx
	conn *conn
}

// Commit commits the transaction.
func (t tx) Commit() error { return t.conn.check(t.Tx.Commit()) }

// ResetSession returns driver.ErrBadConn where the server lost its role. database/sql calls it when
// it takes the connection out of the pool. All connections of a server share one query per RoleTTL.
func (c *conn) ResetSession(ctx context.Context) error {
	if err := c.Conn.ResetSession(ctx); err != nil {
		return err
	}
	confirmed, refused := c.server.confirmedAt.Load(), c.server.refusedAt.Load()
	switch {
	case refused > confirmed && isWithin(ServerTimeout, refused):
		return driver.ErrBadConn // another connection has just checked
	case isWithin(RoleTTL, confirmed):
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, ServerTimeout)
	defer cancel()
	if err := c.server.checkWritable(asking, c); err != nil {
		if ctx.Err() == nil {
			c.server.refusedAt.Store(time.Now().UnixNano())
		}
		return driver.ErrBadConn
	}
	return nil
}

// isWithin reports whether a moment, in nanoseconds since the Unix epoch, is less than d from now.
// It is not if it is far ahead: this host's clock was set back since.
func isWithin(d time.Duration, at int64) bool { return time.Since(time.Unix(0, at)).Abs() < d }
