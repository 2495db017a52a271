//go:build clusters

package servers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/servers"
)

// TestMySQLGroup is a group's whole life.
func TestMySQLGroup(t *testing.T) {
	group := servers.MySQLGroup(t, 3)
	name := group.NewDatabase(t)
	first, err := group.Primary(t.Context())
	require.NoError(t, err)
	db := openSQL(t, first.DSN(name))
	_, err = db.ExecContext(t.Context(), "CREATE TABLE goods (id BIGINT PRIMARY KEY, title VARCHAR(20))")
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "INSERT INTO goods VALUES (7, '手机🔥')")
	require.NoError(t, err)

	require.NoError(t, first.Kill())
	second, err := group.AwaitPrimary(t.Context(), first)
	require.NoError(t, err)
	db = openSQL(t, second.DSN(name))
	require.Equal(t, "手机🔥", title(t, db), "what was committed outlives the primary")
	_, err = db.ExecContext(t.Context(), "INSERT INTO goods VALUES (8, 'late')")
	require.NoError(t, err)

	require.NoError(t, first.Restart(t.Context()))
	_, err = openSQL(t, first.DSN(name)).ExecContext(t.Context(), "INSERT INTO goods VALUES (9, 'no')")
	require.ErrorContains(t, err, "read-only", "it is a secondary now")
	require.NoError(t, group.Switch(t.Context(), first))
	var rows int
	require.NoError(t, openSQL(t, first.DSN(name)).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM goods").Scan(&rows))
	require.Equal(t, 2, rows, "it has caught up")

	for _, m := range group.Members() {
		require.NoError(t, m.Kill())
	}
	require.NoError(t, group.Heal(t.Context()))
	primary, err := group.Primary(t.Context())
	require.NoError(t, err)
	require.NoError(t, openSQL(t, primary.DSN(name)).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM goods").Scan(&rows))
	require.Equal(t, 2, rows)
}
