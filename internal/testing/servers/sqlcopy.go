package servers

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

// NewCopy works as NewDatabase. The database has the tables and rows that fill creates. fill runs
// once for each server, on a database that later calls copy, so all calls must pass the same
// function. A copy costs MySQL a part of what all migrations cost. An external server keeps nothing
// after a test, so there fill runs for each test.
func (s *SQLServer) NewCopy(tb testing.TB, fill func(dsn string)) string {
	tb.Helper()
	dsn := s.NewDatabase(tb)
	if s.external {
		fill(dsn)
		return dsn
	}
	model := s.filled(tb, fill)
	name := must.Get(mysql.ParseDSN(dsn))(tb).DBName
	require.NoError(tb, s.copyTables(tb.Context(), model, name))
	return dsn
}

// filled returns the name of the database that fill has filled. It exists as long as the server.
func (s *SQLServer) filled(tb testing.TB, fill func(dsn string)) string {
	tb.Helper()
	s.filling.Lock()
	defer s.filling.Unlock()
	if s.model == "" {
		name := must.Get(s.createDatabase(tb.Context()))(tb)
		fill(s.DSN(name))
		s.model = name
	}
	return s.model
}

// copyTables copies all tables with their rows to an empty database. It does not use CREATE TABLE
// LIKE, with which MySQL renames the constraints.
func (s *SQLServer) copyTables(ctx context.Context, from, to string) error {
	statements := "USE " + to + ";"
	err := s.with(func(db *sql.DB) error {
		var tables sql.NullString
		err := db.QueryRowContext(ctx, `SELECT GROUP_CONCAT(table_name) FROM
			information_schema.tables WHERE table_schema = ?`, from).Scan(&tables)
		if err != nil {
			return err
		}
		for table := range strings.SplitSeq(tables.String, ",") {
			var name, definition string
			err := db.QueryRowContext(ctx, "SHOW CREATE TABLE "+from+"."+table).
				Scan(&name, &definition)
			if err != nil {
				return err
			}
			statements += definition + "; INSERT INTO " + name + " SELECT * FROM " + from + "." +
				name + ";"
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the tables of %s: %w", from, err)
	}
	return s.exec(ctx, statements)
}
