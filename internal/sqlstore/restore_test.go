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
	out := must.Get(h.WriteFailed(h.t.Context(), sale.GoodsID, l, sale.Epoch, order.FailedUnwritten,
		order.DeadLetter{}, today))(h.t)
	require.NoError(h.t,
		h.MarkReleased(h.t.Context(), sale.GoodsID, []string{out.Moves[0].ID}, today))
	deadLetters := must.Get(h.DeadLetters(h.t.Context(), "", 100))(h.t)
	return l, deadLetters[len(deadLetters)-1]
}

func TestRestoreOrder_RestoresOnce(t *testing.T) {
	onEach(t, func(t *testing.T, h fixture) {
		sale := h.exposed(10, 3)
		l, deadLetter := h.writeFailedOrder(sale, 1, 2)
		undo := must.Get(h.ScheduleRelease(t.Context(), sale.GoodsID, l, today.Add(time.Minute)))(t)
		require.Empty(t, must.Get(h.UnreleasedMoves(t.Context(), today.Add(59*time.Second), 10))(t),
			"the releaser ignores it until then")
		_, err := h.ScheduleRelease(t.Context(), sale.GoodsID, l, today.Add(time.Minute))
		require.Equal(t, seckill.Unavailable, seckill.ReasonOf(err), "one at a time")
		o := must.Get(h.RestoreOrder(t.Context(), deadLetter.ID, undo, today,
			today.Add(time.Hour)))(t)
		require.Equal(t, order.Created, o.Status)
		require.Equal(t, o, must.Get(h.Order(t.Context(), sale.GoodsID, l.OrderSn))(t))
		require.EqualValues(t, 2, h.requireBalanced(sale.GoodsID))
		require.Empty(t, h.moves(sale.GoodsID))
		_, err = h.DeadLetter(t.Context(), deadLetter.ID)
		require.ErrorIs(t, err, order.ErrNoSuchDeadLetter)
		_, err = h.RestoreOrder(t.Context(), deadLetter.ID, undo, today, today.Add(time.Hour))
		require.ErrorIs(t, err, order.ErrTryAgain, "its return is gone")
		require.EqualValues(t, 2, h.requireBalanced(sale.GoodsID))
	})
}

func TestRestoreOrder_NeedsStockAndLimit(t *testing.T) {
	onEach(t, func(t *testing.T, h fixture) {
		sale := h.exposed(4, 3)
		l, deadLetter := h.writeFailedOrder(sale, 1, 2)
		plan := func() order.StockMove {
			undo := must.Get(h.ScheduleRelease(t.Context(), sale.GoodsID, l,
				today.Add(time.Minute)))(t)
			return undo
		}
		undo := plan()
		h.writeAll(sale.GoodsID, h.line(sale, 2, 3))
		_, err := h.RestoreOrder(t.Context(), deadLetter.ID, undo, today, today.Add(time.Hour))
		requireConflict(t, err) // too few are left
		require.Equal(t, []order.StockMove{undo}, h.moves(sale.GoodsID),
			"what Redis took for it goes back")
		require.NoError(t, h.MarkReleased(t.Context(), sale.GoodsID, []string{undo.ID}, today))
		undo = plan()
		h.beginEpoch(sale.GoodsID)
		_, err = h.RestoreOrder(t.Context(), deadLetter.ID, undo, today, today.Add(time.Hour))
		require.ErrorIs(t, err, order.ErrTryAgain, "what was taken in the old epoch is void")
		require.EqualValues(t, 3, h.requireBalanced(sale.GoodsID))
		must.Get(h.DeadLetter(t.Context(), deadLetter.ID))(t)
	})
}
