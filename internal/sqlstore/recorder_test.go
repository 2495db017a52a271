package sqlstore

import (
	"context"
	"database/sql/driver"
	"sync"

	"flashsale.dev/seckill/internal/sqlstore/primary"
)

// recorder records every statement on a store's connections under the current step.
type recorder struct {
	mu    sync.Mutex
	step  string
	texts map[string][]string
}

func (r *recorder) wrap(c driver.Connector) driver.Connector { return recordedConnector{c, r} }

// setStep names the step of the statements that follow.
func (r *recorder) setStep(step string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.step = step
}

func (r *recorder) add(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.texts == nil {
		r.texts = make(map[string][]string)
	}
	r.texts[r.step] = append(r.texts[r.step], text)
}

type recordedConnector struct {
	driver.Connector
	in *recorder
}

func (c recordedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return recordedConn{conn.(primary.Conn), c.in}, nil
}

type recordedConn struct {
	primary.Conn
	in *recorder
}

func (c recordedConn) ExecContext(
	ctx context.Context, query string, args []driver.NamedValue,
) (driver.Result, error) {
	c.in.add(query)
	return c.Conn.ExecContext(ctx, query, args)
}

func (c recordedConn) QueryContext(
	ctx context.Context, query string, args []driver.NamedValue,
) (driver.Rows, error) {
	c.in.add(query)
	return c.Conn.QueryContext(ctx, query, args)
}

func (c recordedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	c.in.add(query)
	return c.Conn.PrepareContext(ctx, query)
}
