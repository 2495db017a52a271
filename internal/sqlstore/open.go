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

// Options bound the pool of connections. Zero values mean the defaults. SQLite always has one connection.
type Options struct {
	MaxOpenConns int           // 32: more only queue up at the hot rows
	MaxIdleConns int           // as many as may be open
	MaxIdleTime  time.Duration // 4s, and no more: the server ends what is silent for 10 s
	MaxLifetime  time.Duration // 30m: so that connections move after a failover
	// ReadDSN names a replica, or several in one address, that may be behind: lists for people are read there (see listing).
	// Empty, or the database SQLite: there is none.
	ReadDSN string

	wrap func(driver.Connector) driver.Connector // tests look at what goes over the connections; nil in earnest
}

// Store is the database.
type Store struct {
	db       *gorm.DB
	pool     *sql.DB
	schema   *sql.DB  // for migrations, whose statements may take minutes; SQLite's only one
	replica  *replica // nil where there is no replica
	engine   engine
	optimism optimism
}

// engine tells the two families apart where SQL can't.
type engine int

const (
	mysqlEngine engine = iota
	sqliteEngine
)

// Open prepares a store. A DSN that begins with "sqlite:" (a path follows) or "file:" (an SQLite URI) is SQLite's;
// any other is go-sql-driver's "user:password@tcp(host:port)/database?…", whose address may be a list "h1:3306,h2:3306":
// then connections go to the one of them that takes writes (see package primary). MySQL need not be up yet: connections are made when
// they are needed.
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

// newStore puts GORM on a pool. GORM's own transactions, prepared statements and log are off: methods here own their
// transactions, statements with lists differ from call to call, and errors are logged once, where they end up.
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
		QueryFields:            true, // columns by name, never SELECT *
		Logger:                 logger.Discard,
		NowFunc:                func() time.Time { return time.Now().UTC() },
	})
	if err != nil {
		_ = pool.Close()
	}
	return db, err
}

// Ping asks the database whether it is there.
func (s *Store) Ping(ctx context.Context) error { return wrapError("ping", s.pool.PingContext(ctx)) }

// Pool returns the pool of connections, for its metrics.
func (s *Store) Pool() *sql.DB { return s.pool }

// Close closes all connections.
func (s *Store) Close() error {
	return errors.Join(s.pool.Close(), s.schema.Close(), s.replica.close()) // closing twice is nothing
}

// read gives a session for statements outside a transaction.
func (s *Store) read(ctx context.Context) *gorm.DB { return s.db.WithContext(ctx) }

// inTx runs steps in one transaction. An error of theirs, or a panic, rolls it back; an error of the commit
// is returned, and then the outcome is unknown.
func (s *Store) inTx(ctx context.Context, op string, steps func(tx *gorm.DB) error) error {
	return wrapError(op, s.db.WithContext(ctx).Transaction(steps))
}
