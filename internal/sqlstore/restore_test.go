package sqlstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// writeFailedOrder writes a failed order and marks its move as released.
func (h fixture) writeFailedOrder(
	sale seckill.Sale, buyer, quantity int64,
) (reservation.OrderLine, order.DeadLetter) {
	h.t.Helper()
	l := h.line(sale, buyer, quantity)
	out, err := h.WriteFailed(h.t.Context(), sale.GoodsID, l, sale.Epoch, order.FailedUnwritten,
		order.DeadLetter{}, today)
	require.NoError(h.t, err)
	require.NoError(h.t,
		h.MarkReleased(h.t.Context(), sale.GoodsID, []string{out.Moves[0].ID}, today))
	deadLetters, err := h.DeadLetters(h.t.Context(), "", 100)
	require.NoError(h.t, err)
	return l, deadLetters[len(deadLetters)-1]
}

func TestRestoreOrder_RestoresOnce(t *testing.T) {
	onEach(t, func(t *testing.T, h fixture) {
		sale := h.exposed(10, 3)
		l, deadLetter := h.writeFailedOrder(sale, 1, 2)
		undo, err := h.ScheduleRelease(t.Context(), sale.GoodsID, l, today.Add(time.Minute))
		require.NoError(t, err)
		early, err := h.UnreleasedMoves(t.Context(), today.Add(59*time.Second), 10)
		require.NoError(t, err)
		require.Empty(t, early, "the releaser ignores it until then")
		_, err = h.ScheduleRelease(t.Context(), sale.GoodsID, l, today.Add(time.Minute))
		require.Equal(t, seckill.Unavailable, seckill.ReasonOf(err), "one at a time")
		o, err := h.RestoreOrder(t.Context(), deadLetter.ID, undo, today, today.Add(time.Hour))
		require.NoError(t, err)
		require.Equal(t, order.Created, o.Status)
		kept, err := h.Order(t.Context(), sale.GoodsID, l.OrderSn)
		require.NoError(t, err)
		require.Equal(t, o, kept)
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
			undo, err := h.ScheduleRelease(t.Context(), sale.GoodsID, l, today.Add(time.Minute))
			require.NoError(t, err)
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
		_, err = h.DeadLetter(t.Context(), deadLetter.ID)
		require.NoError(t, err)
	})
}
