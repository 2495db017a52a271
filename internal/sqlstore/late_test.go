package sqlstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
)

// parking returns a batch that parks its late lines.
func parking(goodsID int64, lines ...reservation.OrderLine) orderwriter.Batch {
	b := batchOf(goodsID, lines...)
	b.Park = true
	return b
}

// parked returns the numbers of the parked orders of a goods.
func (h fixture) parked(goodsID int64) (sns []string) {
	h.t.Helper()
	for _, l := range must.Get(h.LateOrders(h.t.Context(), goodsID, "", 1000))(h.t) {
		sns = append(sns, l.OrderSn)
	}
	return sns
}

// TestWriteBatch_ParksLateOrders checks that a batch with late orders is written and parks those
// that no epoch adopted. A parked order takes no units. It is queued for its buyer, and a query
// writes no tombstone for it.
func (h fixture) TestWriteBatch_ParksLateOrders(t *testing.T) {
	sale := h.exposed(10, 5)
	written, late, adopted := h.line(sale, 1, 1), h.line(sale, 2, 2), h.line(sale, 3, 1)
	h.writeAll(sale.GoodsID, written)
	now := h.beginEpoch(sale.GoodsID)
	fresh := h.line(now, 4, 1)

	b := parking(sale.GoodsID, written, late, fresh, late, adopted)
	b.Epoch, b.Adopted = now.Epoch, map[string]int64{adopted.OrderSn: 1}
	for range 2 {
		out := h.write(b)
		require.Empty(t, out.Failed)
		require.NotContains(t, out.Existing, late.OrderSn)
	}
	require.Equal(t, []string{late.OrderSn}, h.parked(sale.GoodsID))
	require.Equal(t, []int64{sale.GoodsID}, must.Get(h.LateGoods(t.Context(), 0, 10))(t))
	require.Empty(t, must.Get(h.LateGoods(t.Context(), sale.GoodsID, 10))(t))
	require.EqualValues(t, 1, must.Get(h.CountLateOrders(t.Context()))(t))
	require.EqualValues(t, 3, h.requireBalanced(sale.GoodsID))

	queued := order.Order{
		OrderLine: late, GoodsID: sale.GoodsID, Amount: 2 * sale.Price, Status: order.Queued,
		CreatedAt: b.Now,
	}
	sns := []string{late.OrderSn, fresh.OrderSn, "none"}
	orders := must.Get(h.OrdersByNumber(t.Context(), sale.GoodsID, sns))(t)
	require.Contains(t, orders, queued)
	require.Len(t, orders, 2)
	require.Equal(t, map[string]order.Status{
		late.OrderSn: order.Queued, fresh.OrderSn: order.Created,
	}, must.Get(h.StatusOf(t.Context(), sale.GoodsID, sns))(t))
	lost := tombstone(sale.GoodsID, now.Epoch, late, today)
	require.Equal(t, queued, must.Get(h.WriteTombstone(t.Context(), lost))(t))
}

// TestParkedOrder_EndsWithItsRow checks the ways in which a parked order gets its row: adopted,
// refused, and reserved again in the present epoch with another quantity.
func (h fixture) TestParkedOrder_EndsWithItsRow(t *testing.T) {
	sale := h.exposed(10, 5)
	adopted, refused, repeated := h.line(sale, 1, 1), h.line(sale, 2, 1), h.line(sale, 3, 1)
	now := h.beginEpoch(sale.GoodsID)
	late := []reservation.OrderLine{adopted, refused, repeated}
	h.write(parking(sale.GoodsID, late...))
	require.Len(t, h.parked(sale.GoodsID), 3)

	b := parking(sale.GoodsID, adopted, repeated)
	b.Epoch = now.Epoch
	b.Adopted = map[string]int64{adopted.OrderSn: 1, repeated.OrderSn: 3}
	written := h.write(b)
	require.Equal(t, []string{adopted.OrderSn}, written.Created)
	require.Contains(t, h.parked(sale.GoodsID), repeated.OrderSn,
		"other units are another message's")
	h.writeFailed(sale.GoodsID, refused, order.FailedLost)
	again := repeated
	again.Epoch, again.Quantity = now.Epoch, 3
	require.Equal(t, []string{again.OrderSn}, h.writeAll(sale.GoodsID, again).Created)
	// The present epoch's message does not search for parked orders; their own next try does.
	require.Contains(t, h.write(parking(sale.GoodsID, late...)).Existing, repeated.OrderSn)
	require.Empty(t, h.parked(sale.GoodsID))
	require.EqualValues(t, 4, h.requireBalanced(sale.GoodsID))
	require.EqualValues(t, 3, h.order(sale.GoodsID, repeated.OrderSn).Quantity)
}

// TestBeginEpoch_WritesParkedOrders checks that an epoch begins with the parked orders, as far as
// stock and limits allow. Its snapshot counts them.
func (h fixture) TestBeginEpoch_WritesParkedOrders(t *testing.T) {
	sale := h.exposed(4, 2)
	lines := h.lines(sale, 6)
	now := h.beginEpoch(sale.GoodsID)
	h.writeAll(sale.GoodsID, h.line(now, 100, 1))
	h.write(parking(sale.GoodsID, lines...))
	require.Len(t, h.parked(sale.GoodsID), 6)
	old := must.Get(h.NextRebuildToken(t.Context(), sale.GoodsID))(t).Number
	must.Get(h.NextRebuildToken(t.Context(), sale.GoodsID))(t)
	require.ErrorIs(t, h.writeParkedSingly(t.Context(), sale.GoodsID, old, at(today)),
		rebuild.ErrFenced, "a newer rebuild has begun")

	snap := h.beginEpoch(sale.GoodsID)
	require.Zero(t, snap.Stock)
	require.Empty(t, h.parked(sale.GoodsID))
	require.EqualValues(t, 4, h.requireBalanced(sale.GoodsID))
	for i, l := range lines {
		o := h.order(sale.GoodsID, l.OrderSn)
		if i < 3 {
			require.Equal(t, order.Created, o.Status)
			require.Equal(t, at(today).PayBy, o.PayBy)
			continue
		}
		require.Equal(t, order.FailedOversold, o.FailureReason)
	}
	require.Len(t, h.deadLetters(), 3)
}

// TestRetire_WaitsForParkedOrders checks that a sale with a parked order is not over for good.
func (h fixture) TestRetire_WaitsForParkedOrders(t *testing.T) {
	sale := h.exposed(4, 2)
	late := h.line(sale, 1, 1)
	now := h.beginEpoch(sale.GoodsID)
	after := now.EndAt.Add(48 * time.Hour)
	h.write(parking(sale.GoodsID, late))
	require.Len(t, h.parked(sale.GoodsID), 1)
	require.False(t, h.retire(sale.GoodsID, after))
	move := h.writeFailed(sale.GoodsID, late, order.FailedLost).Moves[0]
	require.NoError(t, h.MarkReleased(t.Context(), sale.GoodsID, []string{move.ID}, after))
	require.True(t, h.retire(sale.GoodsID, after))
}
