package sqlstore

import (
	"context"
	"database/sql"
	"strings"

	gormsqlite "github.com/glebarez/sqlite"

	"flashsale.dev/seckill/internal/batcher"
)

// sqlitePrefix begins the DSN of an SQLite file.
const sqlitePrefix = "sqlite:"

// sqliteParams make SQLite durable and free of lock upgrades. Each commit syncs the write-ahead
// log. Transactions take the write lock when they begin, which replaces the goods row's lock.
const sqliteParams = "_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)" +
	"&_pragma=synchronous(FULL)&_txlock=immediate"

// SQLiteFile returns the file that a DSN names, and whether the DSN is one of SQLite.
func SQLiteFile(dsn string) (file string, sqlite bool) {
	rest, sqlite := strings.CutPrefix(dsn, sqlitePrefix)
	if !sqlite {
		return "", false
	}
	file, _, _ = strings.Cut(rest, "?")
	return file, true
}

// openSQLite opens the file with one connection. SQLite runs writers one after another in any case,
// and a single connection never gets SQLITE_BUSY.
func openSQLite(ctx context.Context, dsn, file string) (*Store, error) {
	pool, err := sql.Open(gormsqlite.DriverName, sqliteDSN(dsn))
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(1)
	pool.SetMaxIdleConns(1)
	if err := pool.PingContext(ctx); err != nil { // a wrong path, or a file that is no database
		_ = pool.Close()
		return nil, WithRemedy(err, file)
	}
	store, err := newStore(pool, &gormsqlite.Dialector{Conn: pool})
	if err == nil {
		store.addr = file
		store.batches = batcher.New(sharedBatches, store.shareTransaction)
	}
	return store, err
}

// sqliteDSN adds sqliteParams to a DSN.
func sqliteDSN(dsn string) string {
	dsn = strings.TrimPrefix(dsn, sqlitePrefix)
	if strings.Contains(dsn, "?") {
		return dsn + "&" + sqliteParams
	}
	return dsn + "?" + sqliteParams
}
