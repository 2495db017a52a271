package order_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/testing/must"
)

// numbers is the head of a SQLite statement that has a row for each of n from 1 to 600.
const numbers = `WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers
	WHERE n < 600) `

// unloaded exposes a sale that Redis then loses. No worker of these tests rebuilds it.
func (h *fixture) unloaded() int64 {
	h.t.Helper()
	goods := h.exposeSale(600, 1).GoodsID
	h.mini.FlushAll()
	return goods
}

// run runs a worker until the test ends.
func (h *fixture) run(w interface{ Run(context.Context) error }) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	h.t.Cleanup(func() {
		cancel()
		require.NoError(h.t, <-done)
	})
}

// TestReleaser_UnreachableSaleStarvesNoOther has 600 older stock moves of a sale without a gate.
func TestReleaser_UnreachableSaleStarvesNoOther(t *testing.T) {
	h := newFixture(t)
	unloaded := h.unloaded()
	h.exec(`INSERT INTO stock_moves
		(goods_id, id, epoch, buyer_id, order_sn, quantity, kind, made_at)
		`+numbers+`SELECT ?, 'move-' || n, 1, n, 'order-' || n, 1, 'cancel', n FROM numbers`,
		unloaded)
	sale := h.exposeSale(5, 2)
	must.Get(h.store.Change(t.Context(), sale.GoodsID, salechange.Change{StockDelta: 3},
		salechange.IdempotencyKey{}, time.Now()))(t)
	h.run(h.releaser())
	require.Eventually(t, func() bool {
		v, err := h.redis.View(t.Context(), sale.GoodsID)
		return err == nil && v.Available == 8
	}, within, tick)
	waiting, _, err := h.store.Unreleased(t.Context(), unloaded)
	require.NoError(t, err)
	require.Equal(t, 600, waiting, "they wait for the rebuild")
}

// TestReleaser_AppliesABacklogOfOneSale has more moves of one sale than one call takes.
func TestReleaser_AppliesABacklogOfOneSale(t *testing.T) {
	h := newFixture(t)
	goods := h.exposeSale(5, 2).GoodsID
	h.exec(`INSERT INTO stock_moves
		(goods_id, id, epoch, buyer_id, order_sn, quantity, kind, made_at)
		`+numbers+`SELECT ?, 'move-' || n, 1, 0, '', 1, 'delta', n FROM numbers`, goods)
	h.run(h.releaser())
	require.Eventually(t, func() bool {
		v, err := h.redis.View(t.Context(), goods)
		return err == nil && v.Available == 605
	}, within, tick)
}

// TestChangeSyncer_UndecidedCutsStarveNoOther has 600 older cuts of a sale without a gate.
func TestChangeSyncer_UndecidedCutsStarveNoOther(t *testing.T) {
	h := newFixture(t)
	unloaded := h.unloaded()
	h.exec(`INSERT INTO stock_cuts
		(goods_id, id, epoch, quantity, wanted, actor_id, actor_role, idempotency_key, state, made_at)
		`+numbers+`SELECT ?, printf('0000-%03d', n), 1, 1, '{"stockDelta":-1}', 1, 'merchant', '',
			'open', n FROM numbers`, unloaded)
	sale := h.exposeSale(5, 2)
	must.Get(h.store.Change(t.Context(), sale.GoodsID, salechange.Change{StockDelta: -3},
		salechange.IdempotencyKey{}, time.Now().Add(-time.Minute)))(t)
	h.run(&inventory.ChangeSyncer{
		Stores: h.releaser().Stores, Sales: func() []seckill.Sale { return nil },
	})
	require.Eventually(t, func() bool {
		after, err := h.store.Sale(t.Context(), sale.GoodsID)
		return err == nil && after.Total == 2
	}, within, tick)
}
