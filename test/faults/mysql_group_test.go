package faults

import (
	"context"
	"database/sql"
	"slices"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// groupFaults hit the primary of a MySQL group, which elects another after 5 to 8 s.
func groupFaults() []fault {
	options := installation.Options{Topology: installation.MySQLGroup}
	primary := func(name string, inject, afterRecovery func(*testing.T, *run)) fault {
		return fault{
			name: "mysql-primary-" + name, options: options, spread: 20 * time.Second,
			concurrent: true, inject: inject, afterRecovery: afterRecovery,
		}
	}
	cutOff := primary("cut-off", cutPrimaryOff, nil)
	cutOff.prepare = createWitnessTable
	full := primary("disk-full", killFullPrimary, freeDisk)
	full.options.OwnSQL = true
	return []fault{
		primary("killed", killPrimary, restartAsSecondary), primary("paused", pausePrimary, nil),
		cutOff, full,
		{name: "mysql-switchover", options: options, spread: full.spread, inject: switchOver},
	}
}

// killPrimary leaves the primary dead: the sale must recover without it.
func killPrimary(t *testing.T, r *run) {
	r.untilPromised(r.random(0.1, 0.5))
	require.NoError(t, r.SQL.Kill())
	awaitNewPrimary(t, r)
}

func awaitNewPrimary(t *testing.T, r *run) {
	t.Helper()
	began := time.Now()
	_, err := r.Group.AwaitPrimary(t.Context(), r.SQL)
	require.NoError(t, err)
	t.Logf("another primary after %s", time.Since(began).Round(time.Millisecond))
}

// restartAsSecondary starts the old primary again, which must not stay primary.
func restartAsSecondary(t *testing.T, r *run) {
	require.NoError(t, r.SQL.Restart(t.Context()))
	awaitNewPrimary(t, r)
}

// pausePrimary suspends the primary, with its connections and transactions, until another is
// elected and for up to 5 s more.
func pausePrimary(t *testing.T, r *run) {
	r.untilPromised(r.random(0.1, 0.5))
	require.NoError(t, r.SQL.Pause())
	awaitNewPrimary(t, r)
	time.Sleep(r.randomSeconds(1, 5))
	require.NoError(t, r.SQL.Resume())
	require.NoError(t, r.Group.Heal(t.Context()))
	awaitNewPrimary(t, r) // the one that slept may still take itself for the primary
}

// killFullPrimary kills a primary that waits for disk space. The group elects no other while it
// waits, so an operator kills it if freeing space takes long. The others may have the transaction
// that it was committing. A full disk may also end the primary before that.
func killFullPrimary(t *testing.T, r *run) {
	r.untilPromised(r.random(0.1, 0.3))
	r.Disk.Fill(t)
	time.Sleep(8 * time.Second)
	t.Logf("the primary ended by itself: %t", !r.SQL.Running())
	require.NoError(t, r.SQL.Kill())
	awaitNewPrimary(t, r)
}

func freeDisk(t *testing.T, r *run) {
	r.Disk.Free(t)
	restartAsSecondary(t, r)
}

// createWitnessTable creates a table to which two primaries at once would both write.
func createWitnessTable(t *testing.T, r *run) {
	r.ExecSQL(t, "CREATE TABLE witness (id VARCHAR(20) PRIMARY KEY)")
}

// cutPrimaryOff cuts the primary off from the other members but not from its clients. For some
// seconds it and a new primary both accept writes; the old one must commit none of them.
func cutPrimaryOff(t *testing.T, r *run) {
	r.untilPromised(r.random(0.1, 0.5))
	old := r.connect(t, r.SQL)
	t.Cleanup(func() { _ = r.Group.Restore() })
	require.NoError(t, r.Group.Cut(r.SQL))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	committed := make(chan error, 1)
	go func() {
		_, err := old.ExecContext(ctx, "INSERT INTO witness VALUES ('old')")
		committed <- err
	}()
	awaitNewPrimary(t, r)
	r.ExecSQL(t, "INSERT INTO witness VALUES ('new')")
	require.Error(t, <-committed, "a primary that is cut off has committed")
	time.Sleep(r.randomSeconds(0, 5))
	require.NoError(t, r.Group.Heal(t.Context()))
	awaitNewPrimary(t, r)
	for _, m := range r.Group.Members() {
		r.requireNewWitness(t, m)
	}
}

// requireNewWitness requires a member to have only the new primary's row.
func (r *run) requireNewWitness(t *testing.T, m *servers.SQLServer) {
	t.Helper()
	var rows, news int
	query := "SELECT COUNT(*), COUNT(CASE id WHEN 'new' THEN 1 END) FROM witness"
	require.NoError(t, r.connect(t, m).QueryRowContext(t.Context(), query).Scan(&rows, &news))
	require.Equal(t, []int{1, 1}, []int{rows, news}, "%s has a row of the old primary", m.Addr())
}

// connect opens one member, whatever its role.
func (r *run) connect(t *testing.T, m *servers.SQLServer) *sql.DB {
	config := must.Get(mysql.ParseDSN(r.DSN))(t)
	db := must.Get(sql.Open("mysql", m.DSN(config.DBName)))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// switchOver makes each member the primary in turn, as an operator does during an upgrade.
func switchOver(t *testing.T, r *run) {
	secondaries := slices.DeleteFunc(slices.Clone(r.Group.Members()),
		func(m *servers.SQLServer) bool { return m == r.SQL })
	for i, m := range append(secondaries, r.SQL) {
		r.untilPromised(float64(i)/4 + r.random(0.05, 0.25))
		require.NoError(t, r.Group.Switch(t.Context(), m))
	}
}
