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
func (s *Store) Migrate(ctx context.Context) error { return s.MigrateWith(ctx, func(int64) {}) }

// MigrateWith is Migrate that calls waits once if another connection has held the lock for some
// seconds, with that connection's id.
func (s *Store) MigrateWith(ctx context.Context, waits func(holder int64)) error {
	p, err := s.provider()
	if err != nil {
		return err
	}
	unlock, err := s.lockSchema(ctx, waits)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.beginVersions(ctx); err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// beginVersions inserts the row with which goose's table begins, if a process died after it had
// created the table. Goose would refuse the empty table.
func (s *Store) beginVersions(ctx context.Context) error {
	_, err := s.schema.ExecContext(ctx, `INSERT INTO goose_db_version (version_id, is_applied)
		SELECT 0, 1 FROM (SELECT COUNT(*) AS n FROM goose_db_version) AS versions WHERE n = 0`)
	if IsNotMigrated(err) { // goose creates the table
		return nil
	}
	return wrapError("begin the table of versions", err)
}

// provider returns goose with the steps of the database's dialect.
func (s *Store) provider() (*goose.Provider, error) {
	dialect := goose.DialectSQLite3
	opts := []goose.ProviderOption{
		// Pass the Go steps here, because tests would share goose's global registry.
		goose.WithDisableGlobalRegistry(true),
		goose.WithGoMigrations(migrations.NoSplitSales(), migrations.TextUserIDs(isSQLite(s.db))),
	}
	if !isSQLite(s.db) {
		dialect = goose.DialectMySQL
	}
	p, err := goose.NewProvider(dialect, s.schema, migrations.Files, opts...)
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return p, nil
}

// lockName is the lock's name: a hash of the database's, because the lock belongs to the server and
// its name has at most 64 characters. It uses SHA2 because MySQL 9 has no MD5.
const lockName = "CONCAT('seckill-migrate-', LEFT(SHA2(DATABASE(), 256), 32))"

// The seconds that a caller waits for the lock, before it reports the wait and altogether.
const (
	lockNotice   = 3
	lockPatience = 86400
)

// lockSchema waits for the migration lock of MySQL and MariaDB until ctx ends, or for a day.
// Goose's own locker would not do: goose first reads its table without the lock, and fails where
// another process has created it and not filled it yet. The lock ends with its connection. A server
// notices the death of a client only after the statement that it runs.
func (s *Store) lockSchema(
	ctx context.Context, waits func(holder int64),
) (unlock func(), err error) {
	if isSQLite(s.db) {
		return func() {}, nil
	}
	conn, err := s.schema.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("migration lock: %w", err)
	}
	var held sql.NullBool
	lock := func(seconds int) error {
		return conn.QueryRowContext(ctx, "SELECT GET_LOCK("+lockName+", ?)", seconds).Scan(&held)
	}
	if err = lock(lockNotice); err == nil && held.Valid && !held.Bool {
		var holder sql.NullInt64 // NULL: it has just ended
		err = conn.QueryRowContext(ctx, "SELECT IS_USED_LOCK("+lockName+")").Scan(&holder)
		if holder.Valid {
			waits(holder.Int64)
		}
		if err == nil {
			err = lock(lockPatience)
		}
	}
	if err == nil && !held.Bool {
		err = errors.New("not granted; SHOW PROCESSLIST shows the connection that may hold it")
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("migration lock: %w", err)
	}
	return func() { _ = conn.Close() }, nil // the pool keeps no idle connection
}
