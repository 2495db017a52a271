package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"time"

	"github.com/go-sql-driver/mysql"
)

// fullConn is all that go-sql-driver's connections can do and database/sql asks for.
type fullConn interface {
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

// memberConn is a connection to one of several servers.
type memberConn struct {
	fullConn
	of   *member
	lost bool // its server has lost the role: the pool throws it away
}

// roleErrors are the answers of a server that lost its role while it was at work. What they answer has not been done. Those of a
// server that is read-only (1290, 1792, 1836) end the connection in the driver (RejectReadOnly).
func roleErrors() []uint16 {
	return []uint16{
		1053, // it is shutting down
		3032, // it is offline for clients
		3100, // the group's part refused the commit: the member is leaving, or is with the fewer
		3101, // the group's part rolled it back: so does a new primary with what it did not certify
		3168, // it is not available
	}
}

// heard looks at an answer.
func (c *memberConn) heard(err error) error {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok && slices.Contains(roleErrors(), e.Number) {
		c.lost = true
	}
	return err
}

// ExecContext listens to the answer.
func (c *memberConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	res, err := c.fullConn.ExecContext(ctx, query, args)
	return res, c.heard(err)
}

// BeginTx begins a transaction whose end is listened to.
func (c *memberConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.fullConn.BeginTx(ctx, opts)
	if err != nil {
		return nil, c.heard(err)
	}
	return memberTx{tx, c}, nil
}

// IsValid is asked when the connection goes back to the pool.
func (c *memberConn) IsValid() bool { return !c.lost && c.fullConn.IsValid() }

type memberTx struct {
	driver.Tx
	on *memberConn
}

// Commit listens to the answer.
func (t memberTx) Commit() error { return t.on.heard(t.Tx.Commit()) }

// ResetSession is called when the connection is taken out of the pool: it ends one whose server has lost its role. The
// question is asked once in roleAge for all connections together.
func (c *memberConn) ResetSession(ctx context.Context) error {
	if err := c.fullConn.ResetSession(ctx); err != nil {
		return err
	}
	proven, failed := c.of.proven.Load(), c.of.failed.Load()
	switch {
	case failed > proven && time.Since(time.Unix(0, failed)) < memberPatience:
		return driver.ErrBadConn // another has just asked
	case time.Since(time.Unix(0, proven)) < roleAge:
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, memberPatience)
	defer cancel()
	if err := c.of.mayWrite(asking, c.fullConn); err != nil {
		if ctx.Err() == nil {
			c.of.failed.Store(time.Now().UnixNano())
		}
		return driver.ErrBadConn
	}
	return nil
}
