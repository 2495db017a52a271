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

// TestWriteFailed_WritesOnce checks that a repeated write of a failed order adds no row, stock move
// or dead letter.
func (h fixture) TestWriteFailed_WritesOnce(t *testing.T) {
	sale := h.exposed(10, 5)
	l := h.line(sale, 1, 2)
	deadLetter := order.DeadLetter{
		Attempts: 3, FirstSeenAt: today.Add(-1), Origin: "seckill.orders.4",
		Body: []byte("as it came"),
	}
	write := func() order.Outcome {
		return must.Get(h.WriteFailed(t.Context(), sale.GoodsID, l, sale.Epoch,
			order.FailedUnwritten, deadLetter, today))(t)
	}
	out := write()
	require.Equal(t, map[string]order.FailureReason{l.OrderSn: order.FailedUnwritten}, out.Failed)
	require.Equal(t, out.Moves, h.moves(sale.GoodsID))

	again := write()
	require.Empty(t, again.Failed)
	require.Equal(t, map[string]order.Status{l.OrderSn: order.Failed}, again.Existing)
	require.Len(t, h.moves(sale.GoodsID), 1)

	deadLetters := h.deadLetters()
	require.Len(t, deadLetters, 1)
	require.Equal(t, order.DeadLetter{
		ID: deadLetters[0].ID, GoodsID: sale.GoodsID, OrderSn: l.OrderSn,
		Reason: order.FailedUnwritten, Attempts: deadLetter.Attempts, Origin: deadLetter.Origin,
		Body: deadLetter.Body, FirstSeenAt: today.Add(-1e6), // the column stores milliseconds
	}, deadLetters[0])
	require.Zero(t, h.requireBalanced(sale.GoodsID))
}

// TestWriteFailed_AcceptsUnknownGoods checks that an order of a sale that does not exist can be
// written as failed.
func (h fixture) TestWriteFailed_AcceptsUnknownGoods(t *testing.T) {
	l := h.line(seckill.Sale{GoodsID: 404, Epoch: 7}, 1, 1)
	require.EqualValues(t, 7, h.writeFailed(404, l, order.FailedNoSale).Epoch)
	require.Equal(t, order.FailedNoSale, h.order(404, l.OrderSn).FailureReason)
}

func (h fixture) TestDeadLetters_AddListRemove(t *testing.T) {
	id := must.Get(uuid.NewV7())(t)
	unreadable := order.DeadLetter{
		ID: id.String(), Reason: order.FailedMalformed, Attempts: 1, FirstSeenAt: today,
		Origin: "q", Body: []byte("\x00\xff'\";--\r\n"),
	}
	require.NoError(t, h.AddDeadLetter(t.Context(), unreadable))
	require.NoError(t, h.AddDeadLetter(t.Context(), unreadable),
		"the store accepts the same dead letter again")
	require.NoError(t, h.AddDeadLetter(t.Context(), order.DeadLetter{
		OrderSn: strings.Repeat("x", 3000), Origin: "\xff", FirstSeenAt: today,
		Body: make([]byte, 1<<20),
	}), "the store keeps a dead letter of any content")
	require.Equal(t, unreadable, must.Get(h.DeadLetter(t.Context(), unreadable.ID))(t))

	first := must.Get(h.DeadLetters(t.Context(), "", 1))(t)
	require.Equal(t, []order.DeadLetter{unreadable}, first)
	require.EqualValues(t, 2, must.Get(h.CountDeadLetters(t.Context()))(t))
	second := must.Get(h.DeadLetters(t.Context(), first[0].ID, 10))(t)
	require.Len(t, second, 1)
	require.Len(t, second[0].Body, 1<<20)

	require.NoError(t, h.RemoveDeadLetter(t.Context(), unreadable.ID))
	require.ErrorIs(t, h.RemoveDeadLetter(t.Context(), unreadable.ID), order.ErrNoSuchDeadLetter)
	_, err := h.DeadLetter(t.Context(), unreadable.ID)
	require.ErrorIs(t, err, order.ErrNoSuchDeadLetter)
	require.NotErrorIs(t, err, order.ErrTryAgain)
}
