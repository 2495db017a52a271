package sqlstore

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/cause"
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
			err := h.CheckSchema(t.Context())
			schema, ok := errors.AsType[*SchemaError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, SchemaError{h.Addr(), version, newest}, *schema)
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
		require.NoError(t, h.CheckSchema(t.Context()))
		require.NoError(t, h.db.Exec("DROP TABLE goose_db_version").Error)
		require.NoError(t, h.CheckSchema(t.Context()), "the version is not read again")
	})
}

// TestCheckReadiness_ReadOnlyServerIsNotReady sets the variable of servers of its own.
func TestCheckReadiness_ReadOnlyServerIsNotReady(t *testing.T) {
	t.Parallel()
	server := servers.MariaDB(t)
	h := newFixture(t, server.NewDatabase(t))
	require.NoError(t, h.CheckReadiness(t.Context()))
	require.NoError(t, h.db.Exec("SET GLOBAL read_only = 1").Error)
	require.Equal(t, cause.ReadOnly, cause.Of(h.CheckReadiness(t.Context())))
	require.NoError(t, h.db.Exec("SET GLOBAL read_only = 0").Error)
	require.NoError(t, h.CheckReadiness(t.Context()))
}
