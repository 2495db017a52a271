package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// Options bound the connection pool. Zero values mean the defaults. SQLite always has one
// connection.
type Options struct {
	MaxOpenConns int           // default 32: more only wait for the hot rows
	MaxIdleConns int           // default MaxOpenConns
	MaxIdleTime  time.Duration // default and maximum 4s: the server ends idle sessions
	MaxLifetime  time.Duration // default 30m: connections move after a failover
	// ReadDSN names one or several replicas for lists (see readReplica). Empty, and with SQLite
	// ignored: no replica.
	ReadDSN string

	wrap func(driver.Connector) driver.Connector // tests record statements with it; nil otherwise
}

// Store is the database.
type Store struct {
	db       *gorm.DB
	pool     *sql.DB
	schema   *sql.DB  // for migrations, without read timeout; on SQLite the same pool
	replica  *replica // nil without a replica
	engine   engine
	optimism optimism
}

// engine distinguishes MySQL from SQLite where their SQL differs.
type engine int

const (
	mysqlEngine engine = iota
	sqliteEngine
)

// Open prepares a store. "sqlite:path" and "file:…" (an SQLite URI) open SQLite; any other DSN is
// go-sql-driver's "user:password@tcp(host:port)/database?…". Its address may list servers,
// "h1:3306,h2:3306": connections then go to the one that accepts writes (see package primary).
// MySQL may be down: connections are made when they are needed.
func Open(ctx context.Context, dsn string, opts Options) (*Store, error) {
	open := openMySQL
	if strings.HasPrefix(dsn, "sqlite:") || strings.HasPrefix(dsn, "file:") {
		open = openSQLite
	}
	s, err := open(ctx, dsn, opts)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return s, nil
}

// newStore puts GORM on a pool. GORM's own transactions, prepared statements and log are off:
// methods own their transactions, statements with lists differ between calls, and the caller logs
// errors.
func newStore(pool *sql.DB, dialector gorm.Dialector, kind engine) (*Store, error) {
	db, err := newGORM(pool, dialector)
	if err != nil {
		return nil, err
	}
	return &Store{db: db, pool: pool, schema: pool, engine: kind}, nil
}

func newGORM(pool *sql.DB, dialector gorm.Dialector) (*gorm.DB, error) {
	db, err := gorm.Open(dialector, &gorm.Config{
		SkipDefaultTransaction: true,
		DisableAutomaticPing:   true,
		QueryFields:            true, // columns by name instead of SELECT *
		Logger:                 logger.Discard,
		NowFunc:                func() time.Time { return time.Now().UTC() },
	})
	if err != nil {
		_ = pool.Close()
	}
	return db, err
}

// Ping checks that the database answers.
func (s *Store) Ping(ctx context.Context) error {
	return wrapError("ping", s.pool.PingContext(ctx))
}

// Pool returns the pool of connections, for its metrics.
func (s *Store) Pool() *sql.DB { return s.pool }

// Close closes all connections.
func (s *Store) Close() error {
	return errors.Join(s.pool.Close(), s.schema.Close(),
		s.replica.close()) // closing twice is harmless
}

// read returns a session for statements outside a transaction.
func (s *Store) read(ctx context.Context) *gorm.DB { return s.db.WithContext(ctx) }

// inTx runs steps in one transaction and rolls it back on an error or a panic. After an error of
// the commit the outcome is unknown.
func (s *Store) inTx(ctx context.Context, op string, steps func(tx *gorm.DB) error) error {
	return wrapError(op, s.db.WithContext(ctx).Transaction(steps))
}
