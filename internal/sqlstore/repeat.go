package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"

	"github.com/go-sql-driver/mysql"

	"flashsale.dev/seckill/internal/sqlstore/primary"
)

// repeatConnector opens connections on which a step of a migration may run again from its
// beginning. MySQL commits each change of a table by itself. So a process that dies within a step
// leaves the first changes behind, without the version of the step.
type repeatConnector struct{ driver.Connector }

// Connect opens a connection.
func (r repeatConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := r.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return repeatConn{conn.(primary.Conn)}, nil
}

type repeatConn struct{ primary.Conn }

// ExecContext runs a statement. It succeeds if an earlier attempt has made the change: the column
// or the index exists (errors 1060 and 1061), or the one to drop does not (1091).
func (c repeatConn) ExecContext(
	ctx context.Context, statement string, args []driver.NamedValue,
) (driver.Result, error) {
	result, err := c.Conn.ExecContext(ctx, statement, args)
	e, ok := errors.AsType[*mysql.MySQLError](err)
	if ok && slices.Contains([]uint16{1060, 1061, 1091}, e.Number) {
		return driver.ResultNoRows, nil
	}
	return result, err
}
