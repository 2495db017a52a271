package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pressly/goose/v3"

	"flashsale.dev/seckill/migrations"
)

// Migrate brings the schema up to date. On MySQL and MariaDB concurrent callers take turns.
func (s *Store) Migrate(ctx context.Context) error {
	p, err := s.provider()
	if err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// provider returns goose with the steps of the database's dialect.
func (s *Store) provider() (*goose.Provider, error) {
	dialect := goose.DialectSQLite3
	opts := []goose.ProviderOption{
		// Pass the Go step here, because tests would share goose's global registry.
		goose.WithDisableGlobalRegistry(true), goose.WithGoMigrations(migrations.NoSplitSales()),
	}
	if !isSQLite(s.db) {
		dialect, opts = goose.DialectMySQL, append(opts, goose.WithSessionLocker(namedLock{}))
	}
	p, err := goose.NewProvider(dialect, s.schema, migrations.Files, opts...)
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return p, nil
}

// namedLock is goose's session lock for MySQL and MariaDB, by GET_LOCK. Lock names belong to the
// server and have at most 64 characters. The name therefore holds a hash of the database's name, by
// SHA2 because MySQL 9 has no MD5. The lock ends with its connection.
type namedLock struct{}

const lockName = "CONCAT('seckill-migrate-', LEFT(SHA2(DATABASE(), 256), 32))"

// SessionLock waits for the lock until ctx ends, or for a day.
func (namedLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	return callLock(ctx, conn, "GET_LOCK("+lockName+", 86400)")
}

// SessionUnlock releases the lock.
func (namedLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	return callLock(ctx, conn, "RELEASE_LOCK("+lockName+")")
}

// callLock calls a function of a lock, which returns 1 if this connection holds or held the lock.
func callLock(ctx context.Context, conn *sql.Conn, call string) error {
	var held sql.NullBool
	err := conn.QueryRowContext(ctx, "SELECT "+call).Scan(&held)
	if err == nil && !held.Bool {
		err = errors.New("the lock is not held")
	}
	if err != nil {
		return fmt.Errorf("migration lock: %s: %w", call, err)
	}
	return nil
}
