package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/sqlstore/primary"
)

// replica is a read-only copy of the database with an unbounded delay. Only lists for people use
// it.
type replica struct {
	db        *gorm.DB
	pool      *sql.DB
	addr      string
	skipUntil atomic.Int64 // ns since the Unix epoch
}

// replicaBackoff is how long lists use the primary after the replica failed.
const replicaBackoff = 5 * time.Second

// openReplica prepares the replica's pool; nil without a DSN.
func openReplica(dsn string) (*replica, error) {
	if dsn == "" {
		return nil, nil // no replica
	}
	cfg, err := mysqlConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("the replica: %w", err)
	}
	connector, err := primary.NewReadConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("the replica: %w", err)
	}
	pool := sql.OpenDB(sessionConnector{connector})
	limitPool(pool)
	addr := strings.Join(primary.Addresses(cfg), ",")
	db, err := newGORM(pool, mysqlDialector(pool, addr))
	if err != nil {
		return nil, err
	}
	return &replica{db: db, pool: pool, addr: addr}, nil
}

// ReplicaAddr returns the addresses of the replicas, for operators; "" without one.
func (s *Store) ReplicaAddr() string {
	if s.replica == nil {
		return ""
	}
	return s.replica.addr
}

// CheckReplica checks that the replica answers, for operators: lists use the primary while it does
// not.
func (s *Store) CheckReplica(ctx context.Context) error {
	if s.replica == nil {
		return nil
	}
	err := nameServer(s.replica.addr, s.replica.pool.PingContext(ctx))
	return wrapError("ping the replica", err)
}

// close closes the pool. It accepts a nil replica.
func (c *replica) close() error {
	if c == nil {
		return nil
	}
	return c.pool.Close()
}

// pauses reports whether the replica failed a moment ago. A longer pause is none: this host's clock
// was set back since.
func (c *replica) pauses() bool {
	left := time.Until(time.Unix(0, c.skipUntil.Load()))
	return left > 0 && left <= replicaBackoff
}

// readReplica runs a query on the replica, or on the primary where there is no replica or it fails.
// No decision may depend on the result. Reservations, limits, repairs and the status of one order
// therefore never use it.
func readReplica[T any](
	ctx context.Context, s *Store, read func(q *gorm.DB) (T, error),
) (T, error) {
	c := s.replica
	if c == nil || c.pauses() {
		return read(s.read(ctx))
	}
	result, err := read(c.db.WithContext(ctx))
	if err == nil || ctx.Err() != nil {
		return result, err
	}
	// The next reader must not wait for the replica's timeout too.
	c.skipUntil.Store(time.Now().Add(replicaBackoff).UnixNano())
	return read(s.read(ctx))
}
