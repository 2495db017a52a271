package servers_test

import (
	"database/sql"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

func openSQL(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db := must.Get(sql.Open("mysql", dsn))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func execSQL(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err, statement)
	}
}

// read returns the single value of a query.
func read[T any](t *testing.T, db *sql.DB, query string) (value T) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&value))
	return value
}

// TestMariaDB_ExternalServerKeepsItsDatabases passes a running server's DSN to the tests, as a user
// does for an external server. The tests must change only databases of their own. They must drop
// these however a test ends.
func TestMariaDB_ExternalServerKeepsItsDatabases(t *testing.T) {
	t.Setenv(servers.EnvExternalSQL, "")
	server := servers.MariaDB(t)
	theirs := openSQL(t, server.DSN(""))
	execSQL(t, theirs, "CREATE DATABASE seckill_theirs",
		"CREATE TABLE seckill_theirs.kept (id INT PRIMARY KEY)",
		"INSERT INTO seckill_theirs.kept VALUES (7)")
	before := databases(t, theirs)
	t.Setenv(servers.EnvExternalSQL, server.DSN("seckill_theirs"))
	for name, end := range map[string]func(*failing){
		"a test that passes": func(*failing) {},
		"a test that fails":  func(f *failing) { f.FailNow() },
		"a test that panics": func(*failing) { panic("in a test") },
	} {
		f := &failing{TB: t}
		f.run(func() {
			dsn := servers.MariaDB(f).NewDatabase(f)
			require.NotContains(t, dsn, "seckill_theirs")
			execSQL(t, openSQL(t, dsn), "CREATE TABLE ours (id INT PRIMARY KEY)")
			require.NotEqual(t, before, databases(t, theirs))
			end(f)
		})
		require.Equal(t, before, databases(t, theirs), name)
	}
	external := servers.MariaDB(t)
	require.Error(t, external.DropDatabase(t.Context(), "seckill_theirs"))
	require.ErrorIs(t, external.Kill(), servers.ErrExternal)
	require.ErrorIs(t, external.RestartEmpty(t.Context()), servers.ErrExternal)
	require.NoError(t, external.Stop(), "Stop must ignore an external server")
	require.Equal(t, 7, read[int](t, theirs, "SELECT id FROM seckill_theirs.kept"))
}

func databases(t *testing.T, db *sql.DB) string {
	t.Helper()
	return read[string](t, db,
		"SELECT GROUP_CONCAT(schema_name ORDER BY schema_name) FROM information_schema.schemata")
}

// failing is a test that may fail without a failure of its parent test.
type failing struct {
	testing.TB
	failed   bool
	cleanups []func()
}

func (f *failing) Cleanup(step func()) { f.cleanups = append(f.cleanups, step) }
func (f *failing) Failed() bool        { return f.failed }
func (f *failing) FailNow()            { f.failed = true; runtime.Goexit() }
func (f *failing) Logf(string, ...any) {}

// run runs a test to its end, including a panic, and then its cleanups. The testing package does
// the same.
func (f *failing) run(test func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		test()
	}()
	<-done
	for _, step := range slices.Backward(f.cleanups) {
		step()
	}
}
