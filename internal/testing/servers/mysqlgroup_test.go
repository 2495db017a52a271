//go:build clusters

package servers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// TestMySQLGroup_WholeLife checks a failover, a restart, a switch of the primary and a kill of all
// members. One test does all, because a start takes many seconds.
func TestMySQLGroup_WholeLife(t *testing.T) {
	const count = "SELECT COUNT(*) FROM goods"
	group := servers.MySQLGroup(t)
	name := group.NewDatabase(t)
	first := must.Get(group.Primary(t.Context()))(t)
	execSQL(t, openSQL(t, first.DSN(name)),
		"CREATE TABLE goods (id BIGINT PRIMARY KEY, title VARCHAR(20))",
		"INSERT INTO goods VALUES (7, '手机🔥')")

	require.NoError(t, first.Kill())
	second := must.Get(group.AwaitPrimary(t.Context(), first))(t)
	db := openSQL(t, second.DSN(name))
	require.Equal(t, "手机🔥", read[string](t, db, title), "a committed row must survive the primary")
	execSQL(t, db, "INSERT INTO goods VALUES (8, 'late')")

	require.NoError(t, first.Restart(t.Context()))
	_, err := openSQL(t, first.DSN(name)).ExecContext(t.Context(),
		"INSERT INTO goods VALUES (9, 'no')")
	require.ErrorContains(t, err, "read-only", "the restarted member must be a secondary")
	require.NoError(t, group.Switch(t.Context(), first))
	require.Equal(t, 2, read[int](t, openSQL(t, first.DSN(name)), count),
		"the new primary must have all rows")

	for _, m := range group.Members() {
		require.NoError(t, m.Kill())
	}
	require.NoError(t, group.Heal(t.Context()))
	primary := must.Get(group.Primary(t.Context()))(t)
	require.Equal(t, 2, read[int](t, openSQL(t, primary.DSN(name)), count))
}
