package sqlstore

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

func TestMigrateUpDownUp(t *testing.T) {
	onEach(t, func(t *testing.T, h house) {
		p, err := h.provider()
		require.NoError(t, err)
		h.exposed(5, 1)
		_, err = p.DownTo(t.Context(), 0)
		require.NoError(t, err)
		list, err := h.MigrationStatus(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, list)
		for _, m := range list {
			require.False(t, m.Applied, m.File)
			require.Zero(t, m.AppliedAt)
		}
		require.NoError(t, h.Migrate(t.Context()))
		list, err = h.MigrationStatus(t.Context())
		require.NoError(t, err)
		for i, m := range list {
			require.EqualValues(t, i+1, m.Version, "numbered without gaps")
			require.True(t, m.Applied, m.File)
			require.NotZero(t, m.AppliedAt)
		}
		sale := h.exposed(5, 1)
		h.sn(sale, 1)
		h.balanced(sale.GoodsID)
	})
}

func TestMigrateByManyAtOnce(t *testing.T) {
	for _, d := range databases[1:] { // SQLite has one process
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			dsn := d.dsn(t)
			var g errgroup.Group
			for range 4 {
				g.Go(func() error {
					s, err := Open(t.Context(), dsn, Options{})
					if err != nil {
						return err
					}
					defer s.Close()
					return s.Migrate(t.Context())
				})
			}
			require.NoError(t, g.Wait())
			h := newHouse(t, dsn)
			h.exposed(1, 1)
		})
	}
}
