package sqlstore

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/migrations"
)

// TestMigrate_UpDownUp checks that all migrations can be reverted and applied again.
func TestMigrate_UpDownUp(t *testing.T) {
	onEach(t, databases, func(t *testing.T, dsn string) {
		h := newFixture(t, dsn)
		p := must.Get(h.provider())(t)
		h.exposed(5, 1)
		must.Get(p.DownTo(t.Context(), 0))(t)
		require.Zero(t, must.Get(p.GetDBVersion(t.Context()))(t))
		require.NoError(t, h.Migrate(t.Context()))
		require.Len(t, p.ListSources(), int(must.Get(p.GetDBVersion(t.Context()))(t)),
			"numbered without gaps")
		sale := h.exposed(5, 1)
		h.writeOrder(sale, 1)
		h.requireBalanced(sale.GoodsID)
	})
}

// TestMigrate_ConcurrentCallersTakeTurns checks that several processes can migrate one database at
// the same time.
func TestMigrate_ConcurrentCallersTakeTurns(t *testing.T) {
	onEach(t, sqlServers, func(t *testing.T, dsn string) {
		var g errgroup.Group
		for range 4 {
			g.Go(func() error {
				s, err := Open(t.Context(), dsn, "")
				if err != nil {
					return err
				}
				defer s.Close()
				return s.Migrate(t.Context())
			})
		}
		require.NoError(t, g.Wait())
		newFixture(t, dsn).exposed(1, 1)
	})
}

// TestMigrate_RefusesWhileASplitSaleIsLive checks that the migration refuses to remove the rows of
// split sales while such a sale may still sell.
func TestMigrate_RefusesWhileASplitSaleIsLive(t *testing.T) {
	// Earlier releases made such ids. The stock of the sale was split over four rows.
	const split, row = 272_678_883_688_448_000 | 1<<21 | 2<<18, 1 << 12
	const insert = `INSERT INTO sales (goods_id, merchant_id, title, price, total, stock, version,
		epoch, rebuild_token, per_buyer_limit, max_per_buyer_limit, start_at, end_at,
		rate_algorithm, permits_per_second, max_burst_seconds, max_wait_millis, status, created_at,
		updated_at, bucket)
		VALUES (?, 1, 'a kettle', 1, 5, 5, 0, 1, 0, 1, 1, 1, ?, 'reserve', 1, 1, 1, ?, 1, 1, ?)`
	const transfer = `INSERT INTO stock_cuts (goods_id, id, epoch, quantity, wanted, actor_id,
		actor_role, idempotency_key, state, made_at, to_goods_id)
		VALUES (?, 'transfer', 1, 1, '{}', 0, '', '', ?, 1, ?)`
	later := time.Now().Add(time.Hour).UnixMilli()
	onEach(t, databases, func(t *testing.T, dsn string) {
		h := newFixture(t, dsn)
		p := must.Get(h.provider())(t)
		must.Get(p.DownTo(t.Context(), 12))(t)
		do := func(statement string, args ...any) {
			t.Helper()
			require.NoError(t, h.db.Exec(statement, args...).Error)
		}
		refused := func() {
			t.Helper()
			err := h.Migrate(t.Context())
			refusal, ok := errors.AsType[*migrations.SplitSaleError](err)
			require.True(t, ok, "%v", err)
			require.EqualValues(t, split, refusal.GoodsID)
			require.ErrorContains(t, err, "close the sale or let it end")
		}
		do(insert, split, later, seckill.Draft, 0)
		refused()
		do("UPDATE sales SET status = ? WHERE goods_id = ?", seckill.Exposed, split)
		do(insert, split|row, later, seckill.Exposed, 1)
		refused()
		do("UPDATE sales SET end_at = 1")
		do(transfer, split|row, inventory.CutOpen, split)
		refused()
		do("UPDATE stock_cuts SET state = ?", inventory.CutDone)
		require.NoError(t, h.Migrate(t.Context()))

		var transfers int64
		require.NoError(t, h.db.Model(&cutRow{}).Count(&transfers).Error)
		require.Zero(t, transfers)
		sales := must.Get(h.SalesOf(t.Context(), "", 0, 10))(t)
		require.Len(t, sales, 1, "the migration removes the other row of the sale")
		require.EqualValues(t, split, sales[0].GoodsID)
	})
}
