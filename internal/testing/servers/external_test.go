package servers_test

import (
	"context"
	"database/sql"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/servers"
)

// TestAnExternalServerIsLeftAsItWas: of somebody else's server nothing is touched but databases of our own, and those are gone
// at the end, however the test ended.
func TestAnExternalServerIsLeftAsItWas(t *testing.T) {
	t.Setenv(servers.EnvExternalSQL, "")
	server := servers.MySQL(t)
	theirs := openSQL(t, server.DSN(""))
	do := func(statement string) {
		_, err := theirs.ExecContext(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	do("CREATE DATABASE seckill_theirs")
	t.Cleanup(func() { _, _ = theirs.ExecContext(context.WithoutCancel(t.Context()), "DROP DATABASE seckill_theirs") })
	do("CREATE TABLE seckill_theirs.kept (id INT PRIMARY KEY)")
	do("INSERT INTO seckill_theirs.kept VALUES (7)")
	before := databases(t, theirs)

	t.Setenv(servers.EnvExternalSQL, server.DSN("seckill_theirs"))
	for name, end := range map[string]func(*failing){
		"a test that passes": func(*failing) {},
		"a test that fails":  func(f *failing) { f.FailNow() },
		"a test that panics": func(*failing) { panic("in a test") },
	} {
		f := &failing{TB: t}
		f.run(func() {
			external := servers.MySQL(f)
			dsn := external.NewDatabase(f)
			require.NotContains(t, dsn, "seckill_theirs")
			_, err := openSQL(t, dsn).ExecContext(t.Context(), "CREATE TABLE ours (id INT PRIMARY KEY)")
			require.NoError(t, err)
			require.Len(t, databases(t, theirs), len(before)+1)
			end(f)
		})
		require.Equal(t, before, databases(t, theirs), name)
	}
	external, err := servers.StartMySQL(t.Context(), t.TempDir())
	require.NoError(t, err)
	require.Error(t, external.DropDatabase(t.Context(), "seckill_theirs"))
	var kept int
	require.NoError(t, theirs.QueryRowContext(t.Context(), "SELECT id FROM seckill_theirs.kept").Scan(&kept))
	require.Equal(t, 7, kept)
}

// TestAServerToBeHarmedIsNeverAnExternalOne.
func TestAServerToBeHarmedIsNeverAnExternalOne(t *testing.T) {
	t.Setenv(servers.EnvExternalSQL, "nobody@tcp(127.0.0.1:1)/")
	require.NotZero(t, servers.OwnMariaDB(t).Pid())
}

func databases(t *testing.T, db *sql.DB) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SHOW DATABASES")
	require.NoError(t, err)
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		require.NoError(t, rows.Scan(&name))
		names = append(names, name)
	}
	require.NoError(t, rows.Err())
	slices.Sort(names)
	return names
}

// failing is a test that may fail without failing the one it is in.
type failing struct {
	testing.TB
	failed   bool
	cleanups []func()
}

func (f *failing) Cleanup(step func())       { f.cleanups = append(f.cleanups, step) }
func (f *failing) Failed() bool              { return f.failed }
func (f *failing) FailNow()                  { f.failed = true; runtime.Goexit() }
func (f *failing) Logf(string, ...any)       {}
func (f *failing) Fatalf(s string, a ...any) { f.TB.Errorf(s, a...); f.FailNow() }
func (f *failing) Context() context.Context  { return f.TB.Context() }

// run runs a test to its end, whatever that is, and then its cleanups, as the testing package does.
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
