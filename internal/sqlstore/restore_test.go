package sqlstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
)

// writeFailedOrder writes a failed order and marks its move as released.
func (h fixture) writeFailedOrder(
	sale seckill.Sale, buyer, quantity int64,
) (reservation.OrderLine, order.DeadLetter) {
	h.t.Helper()
	l := h.line(sale, buyer, quantity)
	move := h.writeFailed(sale.GoodsID, l, order.FailedUnwritten).Moves[0]
	require.NoError(h.t, h.MarkReleased(h.t.Context(), sale.GoodsID, []string{move.ID}, today))
	deadLetters := h.deadLetters()
	return l, deadLetters[len(deadLetters)-1]
}

// TestRestoreOrder_RestoresOnce checks that a failed order is restored once. Its dead letter and
// the scheduled release are then gone.
func (h fixture) TestRestoreOrder_RestoresOnce(t *testing.T) {
	sale := h.exposed(10, 3)
	l, deadLetter := h.writeFailedOrder(sale, 1, 2)
	undo := must.Get(h.ScheduleRelease(t.Context(), sale.GoodsID, l, today.Add(time.Minute)))(t)
	require.Empty(t, must.Get(h.UnreleasedMoves(t.Context(), today.Add(59*time.Second), 10))(t),
		"the releaser ignores the move until its time")
	_, err := h.ScheduleRelease(t.Context(), sale.GoodsID, l, today.Add(time.Minute))
	require.Equal(t, seckill.Unavailable, seckill.ReasonOf(err),
		"only one caller at a time restores an order")
	o := must.Get(h.RestoreOrder(t.Context(), deadLetter.ID, undo, today, today.Add(time.Hour)))(t)
	require.Equal(t, order.Created, o.Status)
	require.Equal(t, o, h.order(sale.GoodsID, l.OrderSn))
	require.EqualValues(t, 2, h.requireBalanced(sale.GoodsID))
	require.Empty(t, h.moves(sale.GoodsID))
	_, err = h.DeadLetter(t.Context(), deadLetter.ID)
	require.ErrorIs(t, err, order.ErrNoSuchDeadLetter)
	_, err = h.RestoreOrder(t.Context(), deadLetter.ID, undo, today, today.Add(time.Hour))
	require.ErrorIs(t, err, order.ErrTryAgain, "the scheduled release is gone")
	require.EqualValues(t, 2, h.requireBalanced(sale.GoodsID))
}

// TestRestoreOrder_NeedsStockAndLimit checks that an order is not restored without stock or in
// another epoch. The scheduled release then returns its units.
func (h fixture) TestRestoreOrder_NeedsStockAndLimit(t *testing.T) {
	sale := h.exposed(4, 3)
	l, deadLetter := h.writeFailedOrder(sale, 1, 2)
	plan := func() order.StockMove {
		return must.Get(h.ScheduleRelease(t.Context(), sale.GoodsID, l, today.Add(time.Minute)))(t)
	}
	undo := plan()
	h.writeAll(sale.GoodsID, h.line(sale, 2, 3))
	_, err := h.RestoreOrder(t.Context(), deadLetter.ID, undo, today, today.Add(time.Hour))
	requireConflict(t, err) // too few units are left
	require.Equal(t, []order.StockMove{undo}, h.moves(sale.GoodsID),
		"the scheduled release returns the units that Redis took")
	require.NoError(t, h.MarkReleased(t.Context(), sale.GoodsID, []string{undo.ID}, today))
	undo = plan()
	h.beginEpoch(sale.GoodsID)
	_, err = h.RestoreOrder(t.Context(), deadLetter.ID, undo, today, today.Add(time.Hour))
	require.ErrorIs(t, err, order.ErrTryAgain, "the units of the old epoch are void")
	require.EqualValues(t, 3, h.requireBalanced(sale.GoodsID))
	must.Get(h.DeadLetter(t.Context(), deadLetter.ID))(t)
}
