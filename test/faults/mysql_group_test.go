package faults

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testenv"
	"flashsale.dev/seckill/test/rig"
)

// groupHarms are those of a MySQL group's primary. The group chooses another after 5 to 8 s.
func groupHarms() []harm {
	group := rig.Options{Land: rig.Land{MySQLGroup: true}}
	over := 20 * time.Second
	return []harm{
		{name: "mysql-primary-killed", rig: group, over: over, crowd: true, do: killPrimary, then: backAsSecondary},
		{name: "mysql-primary-paused", rig: group, over: over, crowd: true, do: pausePrimary},
		{name: "mysql-primary-cut-off", rig: group, over: over, crowd: true, before: witness, do: cutPrimaryOff},
		{name: "mysql-primary-disk-full", rig: rig.Options{Land: group.Land, OwnSQL: true}, over: over, crowd: true, do: replaceFull, then: makeRoom},
		{name: "mysql-switchover", rig: group, over: over, do: switchOver},
	}
}

// killPrimary leaves it dead: the sale goes on without it.
func killPrimary(t *testing.T, s *scene) {
	t.Helper()
	s.until(s.between(0.1, 0.5))
	require.NoError(t, s.SQL.Kill())
	awaitAnother(t, s)
}

func awaitAnother(t *testing.T, s *scene) {
	t.Helper()
	began := time.Now()
	_, err := s.Group.AwaitPrimary(t.Context(), s.SQL)
	require.NoError(t, err)
	t.Logf("another primary after %s", time.Since(began).Round(time.Millisecond))
}

// backAsSecondary starts it again once the sale is well without it.
func backAsSecondary(t *testing.T, s *scene) {
	t.Helper()
	require.NoError(t, s.SQL.Restart(t.Context()))
	requireSecondary(t, s)
}

func requireSecondary(t *testing.T, s *scene) {
	t.Helper()
	primary, err := s.Group.Primary(t.Context())
	require.NoError(t, err)
	require.NotSame(t, s.SQL, primary)
}

// pausePrimary stops it in its tracks, connections, transactions and all, until another has its place.
func pausePrimary(t *testing.T, s *scene) {
	t.Helper()
	s.until(s.between(0.1, 0.5))
	require.NoError(t, s.SQL.Pause())
	awaitAnother(t, s)
	s.lasts(time.Duration(s.between(1, 5) * float64(time.Second)))
	require.NoError(t, s.SQL.Resume())
	require.NoError(t, s.Group.Heal(t.Context()))
	requireSecondary(t, s)
}

// replaceFull ends a primary that waits for room, as an operator would who can make none at once: it is of the group still, which chooses no
// other by itself. What it was committing the others may have. Where it has ended by itself, which a full disk may bring about too, another is chosen.
func replaceFull(t *testing.T, s *scene) {
	t.Helper()
	s.until(s.between(0.1, 0.3))
	s.Disk.Fill(t)
	s.lasts(8 * time.Second)
	t.Logf("the primary ended by itself: %t", !s.SQL.Running())
	require.NoError(t, s.SQL.Kill())
	awaitAnother(t, s)
}

func makeRoom(t *testing.T, s *scene) {
	t.Helper()
	s.Disk.Free(t)
	backAsSecondary(t, s)
}

// witness makes a table in which each of two primaries would write.
func witness(t *testing.T, s *scene) {
	t.Helper()
	s.SQLDo(t, "CREATE TABLE witness (id VARCHAR(20) PRIMARY KEY)")
}

// cutPrimaryOff takes the others from the primary and leaves it its clients. For some seconds it and another both believe that they may
// write: what the old one is asked to commit then must never be.
func cutPrimaryOff(t *testing.T, s *scene) {
	t.Helper()
	s.until(s.between(0.1, 0.5))
	old := s.connect(t, s.SQL)
	t.Cleanup(func() { _ = s.Group.Mend() })
	require.NoError(t, s.Group.Cut(s.SQL))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	said := make(chan error, 1)
	go func() {
		_, err := old.ExecContext(ctx, "INSERT INTO witness VALUES ('old')")
		said <- err
	}()
	awaitAnother(t, s)
	s.SQLDo(t, "INSERT INTO witness VALUES ('new')")
	require.Error(t, <-said, "a primary that is cut off has committed")
	s.lasts(time.Duration(s.between(0, 5) * float64(time.Second)))
	require.NoError(t, s.Group.Heal(t.Context()))
	requireSecondary(t, s)
	for _, m := range s.Group.Members() {
		var rows, news int
		err := s.connect(t, m).QueryRowContext(t.Context(), "SELECT COUNT(*), COUNT(CASE id WHEN 'new' THEN 1 END) FROM witness").Scan(&rows, &news)
		require.NoError(t, err)
		require.Equal(t, []int{1, 1}, []int{rows, news}, "%s has what another did not commit", m.Addr())
	}
}

// connect opens one member, whatever its role.
func (s *scene) connect(t *testing.T, m *testenv.SQLServer) *sql.DB {
	t.Helper()
	var name string
	asked, err := sql.Open("mysql", s.DSN)
	require.NoError(t, err)
	defer asked.Close()
	require.NoError(t, asked.QueryRowContext(t.Context(), "SELECT DATABASE()").Scan(&name))
	db, err := sql.Open("mysql", m.DSN(name))
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// switchOver makes each of the others the primary, as an operator does who upgrades them one by one.
func switchOver(t *testing.T, s *scene) {
	t.Helper()
	for i, m := range append(others(s), s.SQL) {
		s.until(float64(i)/4 + s.between(0.05, 0.25))
		require.NoError(t, s.Group.Switch(t.Context(), m))
	}
}

func others(s *scene) []*testenv.SQLServer {
	var list []*testenv.SQLServer
	for _, m := range s.Group.Members() {
		if m != s.SQL {
			list = append(list, m)
		}
	}
	return list
}
