package sqlstore

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
)

// lost returns the tombstone that a buyer's query asks for in the epoch after the sale's.
func lost(sale seckill.Sale, l reservation.OrderLine) order.Order {
	return order.Order{
		OrderLine: reservation.OrderLine{
			OrderSn: l.OrderSn, BuyerID: l.BuyerID, Epoch: sale.Epoch + 1,
		},
		GoodsID: sale.GoodsID, Status: order.Failed,
		FailureReason: order.FailedLost, CreatedAt: today, ClosedAt: today,
	}
}

// TestWriteTombstone_KeepsALateOrderFailed checks that a tombstone keeps its order failed when the
// late message arrives. The message completes the row and returns its units once.
func (h fixture) TestWriteTombstone_KeepsALateOrderFailed(t *testing.T) {
	sale := h.exposed(10, 5)
	lines := h.lines(sale, 3)
	_, err := h.WriteTombstone(t.Context(), lost(sale, lines[0]))
	require.ErrorIs(t, err, order.ErrTryAgain, "MySQL is of another epoch than Redis was")
	h.writeAll(sale.GoodsID, lines[1])
	h.beginEpoch(sale.GoodsID)
	for range 2 {
		require.True(t,
			must.Get(h.WriteTombstone(t.Context(), lost(sale, lines[0])))(t).Tombstone())
	}
	require.Equal(t, order.Created,
		must.Get(h.WriteTombstone(t.Context(), lost(sale, lines[1])))(t).Status,
		"an existing order gets no tombstone")

	b := batchOf(sale.GoodsID, lines...)
	b.Epoch, b.Adopted = 2, map[string]int64{lines[2].OrderSn: 1}
	for i := range 2 {
		out := h.write(b)
		require.Equal(t, order.Failed, out.Existing[lines[0].OrderSn])
		require.Len(t, out.Moves, 1-i, "only the first batch returns the units")
	}
	o := h.order(sale.GoodsID, lines[0].OrderSn)
	require.Equal(t, order.FailedLost, o.FailureReason)
	lines[0].Epoch = 2 // of the tombstone
	require.Equal(t, lines[0], o.OrderLine)
	require.EqualValues(t, 2, h.requireBalanced(sale.GoodsID))
	deadLetters := h.deadLetters()
	require.Len(t, deadLetters, 1)
	require.Equal(t, order.FailedLost, deadLetters[0].Reason)
}

// TestWriteTombstone_FailedOrderKeepsOneRow checks that a failed order with a tombstone keeps one
// row and returns its units once.
func (h fixture) TestWriteTombstone_FailedOrderKeepsOneRow(t *testing.T) {
	sale := h.exposed(10, 5)
	l := h.line(sale, 1, 1)
	h.beginEpoch(sale.GoodsID)
	must.Get(h.WriteTombstone(t.Context(), lost(sale, l)))(t)
	for i := range 2 {
		require.Len(t, h.writeFailed(sale.GoodsID, l, order.FailedUnwritten).Moves, 1-i)
	}
	require.Len(t, h.all(sale.GoodsID), 1)
	require.Zero(t, h.requireBalanced(sale.GoodsID))
}

// TestWriteTombstone_RacesWithTheLateMessage checks that the buyer's query and a concurrent late
// message agree on one row.
func (h fixture) TestWriteTombstone_RacesWithTheLateMessage(t *testing.T) {
	sale := h.exposed(10, 5)
	for range 10 {
		sale = h.sale(sale.GoodsID)
		l := h.line(sale, 1, 1)
		h.beginEpoch(sale.GoodsID)
		b := batchOf(sale.GoodsID, l)
		b.Epoch, b.Adopted = h.sale(sale.GoodsID).Epoch, map[string]int64{l.OrderSn: 1}
		var answer order.Order
		var wg sync.WaitGroup
		wg.Go(func() {
			for answer.Status == "" {
				answer, _ = h.WriteTombstone(t.Context(), lost(sale, l))
			}
		})
		wg.Go(func() {
			for err := error(order.ErrTryAgain); err != nil; {
				_, err = h.WriteBatch(t.Context(), b)
			}
		})
		wg.Wait()
		o := h.order(sale.GoodsID, l.OrderSn)
		require.Equal(t, o.Status, answer.Status)
		if o.Status == order.Created {
			must.Get(h.CancelOne(sale.GoodsID, l.OrderSn, today))(t)
		}
	}
	require.Zero(t, h.requireBalanced(sale.GoodsID))
}
