package sqlstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/cause"
	"flashsale.dev/seckill/internal/sqlstore/primary"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// TestCheckSchema_RefusesAnOlderSchemaOnly checks an empty database, one that lacks the last
// migration, and one of a newer release.
func TestCheckSchema_RefusesAnOlderSchemaOnly(t *testing.T) {
	onEach(t, databases, func(t *testing.T, dsn string) {
		h := openFixture(t, dsn, "")
		newest := int64(len(must.Get(h.provider())(t).ListSources()))
		lacks := func(version int64) {
			t.Helper()
			err := h.checkSchema(t.Context())
			schema, ok := errors.AsType[*schemaError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, schemaError{h.Addr(), version, newest}, *schema)
			require.ErrorContains(t, err, "run seckillctl migrate")
		}
		lacks(0)
		_, err := h.Sale(t.Context(), 1)
		require.True(t, IsNotMigrated(err), "%v", err)
		require.NoError(t, h.Migrate(t.Context()))
		must.Get(must.Get(h.provider())(t).Down(t.Context()))(t)
		lacks(newest - 1)
		require.NoError(t, h.Migrate(t.Context()))
		newer := "INSERT INTO goose_db_version (version_id, is_applied) VALUES (?, 1)"
		require.NoError(t, h.db.Exec(newer, newest+1).Error)
		require.NoError(t, h.checkSchema(t.Context()))
		require.NoError(t, h.db.Exec("DROP TABLE goose_db_version").Error)
		require.NoError(t, h.checkSchema(t.Context()), "the version is not read again")
	})
}

// TestFixture_CopyEqualsTheMigratedSchema checks that a copy of the schema equals that of the
// migrations: columns, indexes, constraints, versions and first rows.
func TestFixture_CopyEqualsTheMigratedSchema(t *testing.T) {
	for _, d := range sqlServers {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			copied, migrated := openFixture(t, d.migrated(t), ""), newFixture(t, d.empty(t))
			tables := copied.tables()
			for name, text := range tables { // MySQL names the default of a copied column
				tables[name] = strings.ReplaceAll(text,
					" CHARACTER SET utf8mb4 COLLATE", " COLLATE")
			}
			require.Equal(t, migrated.tables(), tables)
			require.NoError(t, copied.checkSchema(t.Context()))
			for table := range migrated.tables() {
				require.Equal(t, migrated.count(table), copied.count(table), table)
			}
		})
	}
}

// TestCheckReadiness_ReadOnlyServerIsNotReady sets the variable of servers of its own. The cause is
// the same if the DSN lists several members and all of them are read-only.
func TestCheckReadiness_ReadOnlyServerIsNotReady(t *testing.T) {
	t.Parallel()
	server := servers.MariaDB(t)
	dsn := server.NewDatabase(t)
	h := newFixture(t, dsn)
	cfg := must.Get(mysql.ParseDSN(dsn))(t)
	cfg.Addr += "," + cfg.Addr
	members := openFixture(t, cfg.FormatDSN(), "")
	for _, s := range []fixture{h, members} {
		require.NoError(t, s.CheckReadiness(t.Context()))
	}
	require.NoError(t, h.db.Exec("SET GLOBAL read_only = 1").Error)
	time.Sleep(2 * primary.RoleTTL)
	for _, s := range []fixture{h, members} {
		require.Equal(t, cause.ReadOnly, cause.Of(s.CheckReadiness(t.Context())))
	}
	require.NoError(t, h.db.Exec("SET GLOBAL read_only = 0").Error)
	for _, s := range []fixture{h, members} {
		require.NoError(t, s.CheckReadiness(t.Context()))
	}
}

// TestCheckReadiness_ServerThatRefusesWritesIsNotReady uses a server whose format of the binary log
// does not permit the program's isolation level, and a user without a right.
func TestCheckReadiness_ServerThatRefusesWritesIsNotReady(t *testing.T) {
	t.Parallel()
	dsn := servers.MariaDB(t, "--log-bin=binlog", "--binlog-format=ROW").NewDatabase(t)
	h := newFixture(t, dsn)
	require.NoError(t, h.CheckReadiness(t.Context()))
	require.NoError(t, h.db.Exec("SET GLOBAL binlog_format = 'STATEMENT'").Error)
	statements := openFixture(t, dsn, "")
	require.Equal(t, cause.Statements, cause.Of(statements.CheckReadiness(t.Context())))
	require.NoError(t, h.db.Exec("SET GLOBAL binlog_format = 'ROW'").Error)
	cfg := must.Get(mysql.ParseDSN(dsn))(t)
	for _, statement := range []string{
		"CREATE USER reader@'127.0.0.1' IDENTIFIED BY 'secret'",
		"GRANT SELECT ON " + cfg.DBName + ".* TO reader@'127.0.0.1'",
	} {
		require.NoError(t, h.db.Exec(statement).Error)
	}
	cfg.User, cfg.Passwd = "reader", "secret"
	reader := openFixture(t, cfg.FormatDSN(), "")
	require.Equal(t, cause.Denied, cause.Of(reader.CheckReadiness(t.Context())))
}

// TestOpen_UsesNoConnectionThatTheServerClosed ends the session of an idle connection. The next
// statement is not repeated if it fails after it was sent.
func TestOpen_UsesNoConnectionThatTheServerClosed(t *testing.T) {
	t.Parallel()
	h := openFixture(t, servers.MariaDB(t).NewDatabase(t), "")
	pool := must.Get(h.db.DB())(t)
	admin := must.Get(pool.Conn(t.Context()))(t)
	defer admin.Close()
	var id int64
	session := func() { // uses the other connection of the pool, which is idle afterwards
		row := pool.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()")
		require.NoError(t, row.Scan(&id))
	}
	session()
	killed := id
	_, err := admin.ExecContext(t.Context(), fmt.Sprint("KILL ", killed))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		n, query := 0, "SELECT COUNT(*) FROM information_schema.processlist WHERE id = ?"
		return admin.QueryRowContext(t.Context(), query, killed).Scan(&n) == nil && n == 0
	}, time.Minute, 10*time.Millisecond)
	session()
	require.NotEqual(t, killed, id)
}
