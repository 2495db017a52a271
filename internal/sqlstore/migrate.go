package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pressly/goose/v3"

	"flashsale.dev/seckill/migrations"
)

// Migration is one numbered step of the schema.
type Migration struct {
	Version   int64
	File      string
	Applied   bool
	AppliedAt time.Time // zero where it is not applied
}

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

// MigrationStatus lists the schema's steps in order.
func (s *Store) MigrationStatus(ctx context.Context) ([]Migration, error) {
	p, err := s.provider()
	if err != nil {
		return nil, err
	}
	steps, err := p.Status(ctx)
	if err != nil {
		return nil, wrapError("read the migrations", err)
	}
	list := make([]Migration, 0, len(steps))
	for _, m := range steps {
		list = append(list, Migration{
			Version: m.Source.Version, File: m.Source.Path,
			Applied: m.State == goose.StateApplied, AppliedAt: m.AppliedAt.UTC(),
		})
	}
	return list, nil
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

const (
	lockName       = "CONCAT('seckill-migrate-', LEFT(SHA2(DATABASE(), 256), 32))"
	lockTrySeconds = 5 // per attempt; ctx is checked in between
)

var errLockLost = errors.New("the migration lock was lost")

// SessionLock waits for the lock until ctx ends.
func (namedLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	for {
		var got sql.NullInt64
		err := conn.QueryRowContext(ctx, "SELECT GET_LOCK("+lockName+", ?)", lockTrySeconds).
			Scan(&got)
		switch {
		case err != nil:
			return fmt.Errorf("take the migration lock: %w", err)
		case got.Int64 == 1:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}

// SessionUnlock releases the lock.
func (namedLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	var freed sql.NullInt64
	if err := conn.QueryRowContext(ctx,
		"SELECT RELEASE_LOCK("+lockName+")").Scan(&freed); err != nil {
		return fmt.Errorf("release the migration lock: %w", err)
	}
	if freed.Int64 != 1 {
		return errLockLost
	}
	return nil
}
