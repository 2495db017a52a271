package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/sqlstore/primary"
	"flashsale.dev/seckill/internal/testing/must"
)

// errCut ends a migration as a kill does.
var errCut = errors.New("the process was killed")

// cutConnector cuts its connections after the server has run some statements that change it.
type cutConnector struct {
	driver.Connector
	left *int
}

func (c cutConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return cutConn{conn.(primary.Conn), c.left}, nil
}

// cutConn refuses everything after the cut.
type cutConn struct {
	primary.Conn
	left *int
}

func (c cutConn) ExecContext(
	ctx context.Context, statement string, args []driver.NamedValue,
) (driver.Result, error) {
	*c.left--
	if *c.left < 0 {
		return nil, errCut
	}
	return c.Conn.ExecContext(ctx, statement, args)
}

func (c cutConn) QueryContext(
	ctx context.Context, statement string, args []driver.NamedValue,
) (driver.Rows, error) {
	if *c.left < 0 {
		return nil, errCut
	}
	return c.Conn.QueryContext(ctx, statement, args)
}

// TestMigrate_ContinuesWhereAKillEndedIt kills migrations after one statement, two statements and
// so on, until each step has ended. MySQL commits each change of a table by itself.
func TestMigrate_ContinuesWhereAKillEndedIt(t *testing.T) {
	onEach(t, sqlServers, func(t *testing.T, dsn string) {
		h := openFixture(t, dsn, "")
		left, kills := 0, 0
		connector := must.Get(schemaConnector(must.Get(mysqlConfig(dsn))(t)))(t)
		require.NoError(t, h.schema.Close())
		h.schema = sql.OpenDB(cutConnector{connector, &left})
		for statements, version := 0, int64(0); ; statements++ {
			left = statements
			err := h.Migrate(t.Context())
			if err == nil {
				break
			}
			require.ErrorIs(t, err, errCut)
			kills++
			if now := h.version(); now > version {
				statements, version = -1, now
			}
		}
		require.Greater(t, kills, 100)

		left = math.MaxInt
		pieces := h.tables()
		must.Get(must.Get(h.provider())(t).DownTo(t.Context(), 0))(t)
		require.NoError(t, h.Migrate(t.Context()))
		require.Equal(t, h.tables(), pieces)
	})
}

// version returns the last step that has ended; 0 without any.
func (h fixture) version() int64 {
	h.t.Helper()
	var version sql.NullInt64
	err := h.pool.QueryRowContext(h.t.Context(), "SELECT MAX(version_id) FROM goose_db_version").
		Scan(&version)
	require.True(h.t, err == nil || IsNotMigrated(err), "%v", err)
	return version.Int64
}

// tables returns the columns, indexes and constraints of each table, by its name.
func (h fixture) tables() map[string]string {
	h.t.Helper()
	all := map[string]string{}
	for _, table := range must.Get(h.db.Migrator().GetTables())(h.t) {
		var name, definition string
		require.NoError(h.t, h.pool.QueryRowContext(h.t.Context(), "SHOW CREATE TABLE "+table).
			Scan(&name, &definition))
		// the next id of goose's table follows
		all[name], _, _ = strings.Cut(definition, ") ENGINE")
	}
	return all
}
