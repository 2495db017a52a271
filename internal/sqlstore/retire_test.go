package sqlstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestRetire_WaitsUntilEverythingIsFinal checks that a sale is not retired while it sells, has an
// unpaid order or has an unreleased move.
func (h fixture) TestRetire_WaitsUntilEverythingIsFinal(t *testing.T) {
	ctx, sale := t.Context(), h.exposed(10, 5)
	later := today.Add(48 * time.Hour)
	retire := func(epoch int64, overBefore time.Time) bool {
		return must.Get(h.Retire(ctx, sale.GoodsID, epoch, overBefore, later))(t)
	}
	paid, unpaid := h.writeOrder(sale, 1), h.writeOrder(sale, 2)
	must.Get(h.Pay(sale.GoodsID, paid, today))(t)
	require.False(t, retire(1, later), "an order is unpaid")
	move := must.Get(h.CancelOne(sale.GoodsID, unpaid, today))(t).Move
	require.False(t, retire(1, later), "a stock move is not released")
	require.NoError(t, h.MarkReleased(ctx, sale.GoodsID, []string{move.ID}, today))
	require.False(t, retire(1, today), "the sale has not ended")
	require.False(t, retire(2, later), "the sale has another epoch")
	require.Len(t, must.Get(h.OverBefore(ctx, later, 0, 10))(t), 1)
	require.True(t, retire(1, later))

	require.Empty(t, must.Get(h.OverBefore(ctx, later, 0, 10))(t))
	require.Empty(t, must.Get(h.LiveGoods(ctx, time.Unix(0, 0)))(t))
	require.Empty(t, must.Get(h.RetiredBetween(ctx, today, later))(t))
	require.Len(t, must.Get(h.RetiredBetween(ctx, later, later.Add(time.Second)))(t), 1)
}

// TestRetire_AnyChangeUndoesIt checks that every later change of the sale or its orders makes the
// sale live again.
func (h fixture) TestRetire_AnyChangeUndoesIt(t *testing.T) {
	ctx, later := t.Context(), today.Add(48*time.Hour)
	for name, change := range map[string]func(seckill.Sale){
		"a late order": func(s seckill.Sale) { h.writeOrder(s, 1) },
		"a failed one": func(s seckill.Sale) {
			h.writeFailed(s.GoodsID, h.line(s, 1, 1), order.FailedUnwritten)
		},
		"a requeue": func(s seckill.Sale) {
			must.Get(h.ScheduleRelease(ctx, s.GoodsID, h.line(s, 1, 1), later))(t)
		},
		"a new end": func(s seckill.Sale) {
			end := salechange.Change{EndAt: new(later.Add(time.Hour))}
			must.Get(h.Change(ctx, s.GoodsID, end, noKey, later))(t)
		},
		"a rebuild": func(s seckill.Sale) { h.beginEpoch(s.GoodsID) },
	} {
		sale := h.exposed(10, 5)
		require.True(t, must.Get(h.Retire(ctx, sale.GoodsID, 1, later, later))(t))
		change(sale)
		require.False(t, h.sale(sale.GoodsID).Retired, name)
	}
}
