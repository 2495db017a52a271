package servers_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/servers"
)

func openSQL(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestMariaDB(t *testing.T) { testSQL(t, servers.MariaDB, "MariaDB") }

// testSQL is one server's whole life: starting one takes seconds, so its parts follow each other.
func testSQL(t *testing.T, start func(testing.TB) *servers.SQLServer, kind string) {
	t.Setenv(servers.EnvExternalSQL, "")
	server := start(t)
	dsn := server.NewDatabase(t)
	db := openSQL(t, dsn)
	t.Run("answers", func(t *testing.T) { requireKind(t, db, kind) })
	t.Run("drops a test's database", func(t *testing.T) { requireDropped(t, server) })
	t.Run("keeps committed rows through a kill", func(t *testing.T) {
		_, err := db.ExecContext(t.Context(), "CREATE TABLE goods (id BIGINT PRIMARY KEY, title VARCHAR(20))")
		require.NoError(t, err)
		_, err = db.ExecContext(t.Context(), "INSERT INTO goods VALUES (7, '手机🔥')")
		require.NoError(t, err)
		require.NoError(t, server.Kill())
		require.Error(t, db.PingContext(t.Context()), "a killed server must not answer")
		require.NoError(t, server.Restart(t.Context()))
		require.Equal(t, "手机🔥", title(t, db))
	})
	t.Run("says nothing while paused", func(t *testing.T) {
		require.NoError(t, server.Pause())
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		require.Error(t, db.PingContext(ctx))
		require.NoError(t, server.Resume())
		require.Equal(t, "手机🔥", title(t, db))
	})
	t.Run("is an external server to others", func(t *testing.T) { requireExternal(t, server, start) })
	t.Run("restart empty loses all", func(t *testing.T) {
		require.NoError(t, server.RestartEmpty(t.Context()))
		require.ErrorContains(t, openSQL(t, dsn).PingContext(t.Context()), "Unknown database")
		require.NoError(t, openSQL(t, server.NewDatabase(t)).PingContext(t.Context()))
	})
}

func title(t *testing.T, db *sql.DB) string {
	t.Helper()
	var title string
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT title FROM goods WHERE id = 7").Scan(&title))
	return title
}

func requireKind(t *testing.T, db *sql.DB, kind string) {
	t.Helper()
	var version, charset string
	require.NoError(t, db.QueryRowContext(t.Context(),
		"SELECT CONCAT(@@version, ' ', @@version_comment), @@character_set_database").Scan(&version, &charset))
	require.Contains(t, version, kind)
	require.Equal(t, "utf8mb4", charset)
}

func requireDropped(t *testing.T, server *servers.SQLServer) {
	t.Helper()
	var first, second string
	t.Run("its test", func(t *testing.T) {
		first, second = server.NewDatabase(t), server.NewDatabase(t)
		require.NotEqual(t, first, second)
		require.NoError(t, openSQL(t, first).PingContext(t.Context()))
	})
	require.ErrorContains(t, openSQL(t, first).PingContext(t.Context()), "Unknown database")
}

// requireExternal hands the running server out by its DSN, as a user does whose own server is to be tested on.
func requireExternal(t *testing.T, server *servers.SQLServer, start func(testing.TB) *servers.SQLServer) {
	t.Helper()
	t.Setenv(servers.EnvExternalSQL, server.DSN(""))
	external := start(t)
	require.NoError(t, openSQL(t, external.NewDatabase(t)).PingContext(t.Context()))
	require.ErrorIs(t, external.Kill(), servers.ErrExternal)
	require.ErrorIs(t, external.RestartEmpty(t.Context()), servers.ErrExternal)
	require.NoError(t, external.Stop(), "stopping leaves it alone")
	require.NoError(t, openSQL(t, server.DSN("")).PingContext(t.Context()))
}
