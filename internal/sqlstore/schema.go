package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/glebarez/go-sqlite"
	"github.com/go-sql-driver/mysql"

	"flashsale.dev/seckill/internal/cause"
)

// schemaError means that the database lacks migrations that this program needs.
type schemaError struct {
	Addr            string // of the database
	Version, Needed int64
}

// Error names the database, both migrations and the remedy.
func (e *schemaError) Error() string {
	return fmt.Sprintf("the database at %s has migration %d and this program needs %d: "+
		"run seckillctl migrate", e.Addr, e.Version, e.Needed)
}

// Cause returns cause.NotMigrated, for package cause.
func (*schemaError) Cause() string { return cause.NotMigrated }

// checkSchema returns a *schemaError if the schema is older than the newest migration of this
// program. A newer schema is sufficient, because an upgrade migrates before it replaces programs.
// The store does not read the version again after it was sufficient.
func (s *Store) checkSchema(ctx context.Context) error {
	if s.migrated.Load() {
		return nil
	}
	p, err := s.provider()
	if err != nil {
		return err
	}
	sources := p.ListSources() // in ascending order
	needed := sources[len(sources)-1].Version
	var version sql.NullInt64
	err = s.pool.QueryRowContext(ctx,
		"SELECT MAX(version_id) FROM goose_db_version WHERE is_applied = 1").Scan(&version)
	switch {
	case err != nil && !IsNotMigrated(err):
		return wrapError("read the schema's version", err)
	case version.Int64 < needed:
		return &schemaError{s.addr, version.Int64, needed}
	}
	s.migrated.Store(true)
	return nil
}

// IsNotMigrated reports whether the database lacks a table or a column: MySQL's errors 1146 and
// 1054, and those texts of SQLite.
func IsNotMigrated(err error) bool {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return slices.Contains([]uint16{1054, 1146}, e.Number)
	}
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (strings.Contains(e.Error(), "no such table") ||
		strings.Contains(e.Error(), "no such column"))
}
