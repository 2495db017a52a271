package sqlstore

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
)

func TestWriteFailed_WritesOnce(t *testing.T) {
	onEach(t, func(t *testing.T, h fixture) {
		sale := h.exposed(10, 5)
		l := h.line(sale, 1, 2)
		deadLetter := order.DeadLetter{
			Attempts: 3, FirstSeenAt: today.Add(-1), Origin: "seckill.orders.4",
			Body: []byte("as it came"),
		}
		out := must.Get(h.WriteFailed(t.Context(), sale.GoodsID, l, sale.Epoch,
			order.FailedUnwritten, deadLetter, today))(t)
		require.Equal(t, map[string]order.FailureReason{l.OrderSn: order.FailedUnwritten},
			out.Failed)
		require.Equal(t, out.Moves, h.moves(sale.GoodsID))

		again := must.Get(h.WriteFailed(t.Context(), sale.GoodsID, l, sale.Epoch,
			order.FailedUnwritten, deadLetter, today))(t)
		require.Empty(t, again.Failed)
		require.Equal(t, map[string]order.Status{l.OrderSn: order.Failed}, again.Existing)
		require.Len(t, h.moves(sale.GoodsID), 1)

		deadLetters := must.Get(h.DeadLetters(t.Context(), "", 10))(t)
		require.Len(t, deadLetters, 1)
		want := deadLetter
		want.ID, want.GoodsID, want.OrderSn, want.Reason = deadLetters[0].ID, sale.GoodsID, l.OrderSn, order.FailedUnwritten
		want.FirstSeenAt = today.Add(-1e6) // kept to the millisecond
		require.Equal(t, want, deadLetters[0])
		require.Zero(t, h.requireBalanced(sale.GoodsID))
	})
}

func TestWriteFailed_LeavesAnExistingOrderUnchanged(t *testing.T) {
	onEach(t, func(t *testing.T, h fixture) {
		sale := h.exposed(10, 5)
		l := h.line(sale, 1, 1)
		h.writeAll(sale.GoodsID, l)
		require.Equal(t,
			order.Outcome{Epoch: 1, Existing: map[string]order.Status{l.OrderSn: order.Created}},
			must.Get(h.WriteFailed(t.Context(), sale.GoodsID, l, sale.Epoch, order.FailedLost,
				order.DeadLetter{}, today))(t))
		require.Empty(t, h.moves(sale.GoodsID))
		require.EqualValues(t, 1, h.requireBalanced(sale.GoodsID))
	})
}

func TestWriteFailed_AcceptsUnknownGoods(t *testing.T) {
	onEach(t, func(t *testing.T, h fixture) {
		l := h.line(seckill.Sale{GoodsID: 404, Epoch: 7}, 1, 1)
		require.EqualValues(t, 7, must.Get(h.WriteFailed(t.Context(), 404, l, 7, order.FailedNoSale,
			order.DeadLetter{}, today))(t).Epoch)
		require.Equal(t, order.FailedNoSale,
			must.Get(h.Order(t.Context(), 404, l.OrderSn))(t).FailureReason)
	})
}

func TestDeadLetters_AddListRemove(t *testing.T) {
	onEach(t, func(t *testing.T, h fixture) {
		id := must.Get(uuid.NewV7())(t)
		unreadable := order.DeadLetter{
			ID: id.String(), Reason: order.FailedMalformed, Attempts: 1, FirstSeenAt: today,
			Origin: "q", Body: []byte("\x00\xff'\";--\r\n"),
		}
		require.NoError(t, h.AddDeadLetter(t.Context(), unreadable))
		require.NoError(t, h.AddDeadLetter(t.Context(), unreadable), "the same again")
		require.NoError(t, h.AddDeadLetter(t.Context(), order.DeadLetter{
			OrderSn: strings.Repeat("x", 3000), Origin: "\xff", FirstSeenAt: today,
			Body: make([]byte, 1<<20),
		}), "whatever comes is kept")
		require.Equal(t, unreadable, must.Get(h.DeadLetter(t.Context(), unreadable.ID))(t))

		first := must.Get(h.DeadLetters(t.Context(), "", 1))(t)
		require.Equal(t, []order.DeadLetter{unreadable}, first)
		second := must.Get(h.DeadLetters(t.Context(), first[0].ID, 10))(t)
		require.Len(t, second, 1)
		require.Len(t, second[0].Body, 1<<20)

		require.NoError(t, h.RemoveDeadLetter(t.Context(), unreadable.ID))
		require.ErrorIs(t, h.RemoveDeadLetter(t.Context(), unreadable.ID),
			order.ErrNoSuchDeadLetter)
		_, err := h.DeadLetter(t.Context(), unreadable.ID)
		require.ErrorIs(t, err, order.ErrNoSuchDeadLetter)
		require.NotErrorIs(t, err, order.ErrTryAgain)
	})
}
