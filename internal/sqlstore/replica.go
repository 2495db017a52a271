package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"time"

	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/sqlstore/primary"
)

// replica is a replica, which may be any time behind. Only lists for people are read there.
type replica struct {
	db        *gorm.DB
	pool      *sql.DB
	skipUntil atomic.Int64 // not asked before then, in ns since the epoch
}

// replicaBackoff is for how long a replica that failed is not asked: lists come from the primary then.
const replicaBackoff = 5 * time.Second

func openReplica(opts Options) (*replica, error) {
	if opts.ReadDSN == "" {
		return nil, nil // there is none
	}
	cfg, err := mysqlConfig(opts.ReadDSN)
	if err != nil {
		return nil, fmt.Errorf("the replica: %w", err)
	}
	connector, err := primary.NewReadConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("the replica: %w", err)
	}
	pool := sql.OpenDB(sessionConnector{connector})
	limitPool(pool, opts)
	db, err := newGORM(pool, gormmysql.New(gormmysql.Config{Conn: pool, SkipInitializeWithVersion: true}))
	if err != nil {
		return nil, err
	}
	return &replica{db: db, pool: pool}, nil
}

func (c *replica) close() error {
	if c == nil {
		return nil
	}
	return c.pool.Close()
}

// listing reads what people look at and nothing is decided by: from the replica, or, where there is none or it fails, from
// the primary. A promise, a limit, a repair, and the state of an order that somebody was just told, never come from here.
func (s *Store) readReplica(ctx context.Context, read func(q *gorm.DB) error) error {
	c := s.replica
	if c == nil || time.Now().UnixNano() < c.skipUntil.Load() {
		return read(s.read(ctx))
	}
	err := read(c.db.WithContext(ctx))
	if err == nil || ctx.Err() != nil {
		return err
	}
	c.skipUntil.Store(time.Now().Add(replicaBackoff).UnixNano())
	return read(s.read(ctx))
}
