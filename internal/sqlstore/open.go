package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"flashsale.dev/seckill/internal/batcher"
	"flashsale.dev/seckill/internal/cause"
)

// Store is the database. It is safe for concurrent use.
type Store struct {
	db       *gorm.DB
	pool     *sql.DB
	addr     string       // of the servers, for operators; of SQLite the file
	schema   *sql.DB      // for migrations, without read timeout; on SQLite the same pool
	migrated atomic.Bool  // the schema has been seen with all migrations of this program
	replica  *replica     // nil without a replica
	clock    *serverClock // nil on SQLite
	optimism optimism
	slots    saleSlots
	lastRows *lru.Cache[int64, saleRow] // by goods id, see writeOptimistically
	// batches merges the transactions of batches; nil on MySQL. See transact.
	batches *batcher.Batcher[struct{}, func(*gorm.DB) error, error]
}

// Open prepares a store. "sqlite:path" opens SQLite; any other DSN is go-sql-driver's
// "user:password@tcp(host:port)/database?…". Its address may list servers, "h1:3306,h2:3306":
// connections then use the one that accepts writes (see package primary). MySQL may be down,
// because connections are made when they are needed. readDSN names one or several replicas for
// lists (see readReplica). Empty, and with SQLite ignored: no replica.
func Open(ctx context.Context, dsn, readDSN string) (s *Store, err error) {
	if file, sqlite := SQLiteFile(dsn); sqlite {
		s, err = openSQLite(ctx, dsn, file)
	} else {
		s, err = openMySQL(dsn, readDSN)
	}
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return s, nil
}

// newStore sets up GORM on a pool. GORM's own transactions, prepared statements and log are off:
// methods own their transactions, statements with lists differ between calls, and the caller logs
// errors.
func newStore(pool *sql.DB, dialector gorm.Dialector) (*Store, error) {
	db, err := newGORM(pool, dialector)
	if err != nil {
		return nil, err
	}
	lastRows, _ := lru.New[int64, saleRow](maxLastRows) // it fails for sizes below 1
	return &Store{
		db: db, pool: pool, schema: pool, slots: saleSlots{sales: make(map[int64]*saleSlot)},
		lastRows: lastRows,
	}, nil
}

// newGORM opens GORM without contacting the database. It closes the pool after an error.
func newGORM(pool *sql.DB, dialector gorm.Dialector) (*gorm.DB, error) {
	db, err := gorm.Open(dialector, &gorm.Config{
		SkipDefaultTransaction: true,
		DisableAutomaticPing:   true,
		QueryFields:            true,                        // columns by name instead of SELECT *
		TranslateError:         dialector.Name() == "mysql", // see nameServer
		Logger:                 logger.Discard,
		NowFunc:                func() time.Time { return time.Now().UTC() },
	})
	if err == nil { // GORM translates no error of the statements that return rows
		err = db.Callback().Row().After("gorm:row").Register("name_server", func(tx *gorm.DB) {
			tx.Error = translated(tx, tx.Error)
		})
	}
	if err != nil {
		_ = pool.Close()
	}
	return db, err
}

// Ping checks that the database answers.
func (s *Store) Ping(ctx context.Context) error {
	return wrapError("ping", nameServer(s.addr, s.pool.PingContext(ctx)))
}

// errReadOnly means that the database answers but takes no writes.
var errReadOnly = cause.With(errors.New("the database is read-only"), cause.ReadOnly)

// CheckReadiness checks that the database answers, has the schema (see checkSchema) and takes
// writes. A proxy that does not know the variable counts as writable.
func (s *Store) CheckReadiness(ctx context.Context) error {
	if err := s.Ping(ctx); err != nil {
		return err
	}
	if !isSQLite(s.db) {
		var readOnly string // 0, 1, or a word in later MariaDB
		err := s.pool.QueryRowContext(ctx, "SELECT @@global.read_only").Scan(&readOnly)
		if err == nil && readOnly != "0" && readOnly != "OFF" {
			return errReadOnly
		}
	}
	if err := s.checkSchema(ctx); err != nil {
		return err
	}
	return s.checkWrites(ctx)
}

// checkWrites runs an update of no row. A server refuses it as it refuses every write, for instance
// with a binlog_format of STATEMENT. A locked table is no such problem, and its end is near.
func (s *Store) checkWrites(ctx context.Context) error {
	_, err := s.pool.ExecContext(ctx, "UPDATE sales SET stock = stock WHERE goods_id = 0")
	if ctx.Err() != nil {
		return nil
	}
	return wrapError("write", nameServer(s.addr, err))
}

// Addr returns the addresses of the servers, or SQLite's file, for operators.
func (s *Store) Addr() string { return s.addr }

// Pool returns the pool of connections, for its metrics.
func (s *Store) Pool() *sql.DB { return s.pool }

// Close closes all connections.
func (s *Store) Close() error {
	return errors.Join(s.pool.Close(), s.schema.Close(), s.replica.close()) // twice is harmless
}
