package sqlstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
)

func TestABetIsLostWithoutATrace(t *testing.T) {
	onEach(t, func(t *testing.T, h house) {
		sale := h.exposed(10, 2)
		first := h.line(sale, 1, 1)
		require.Len(t, h.write(sale.GoodsID, first).Created, 1)
		require.True(t, h.bets.take(), "a batch of strangers wins")

		again, stranger := h.line(sale, 1, 1), h.line(sale, 2, 1)
		require.Len(t, h.write(sale.GoodsID, stranger, again).Created, 2, "a buyer who comes back is known by the holding")
		require.False(t, h.bets.take(), "the next batches ask first")

		h.bets.sitOut.Store(0)
		out := h.write(sale.GoodsID, h.line(sale, 3, 1), first)
		require.Len(t, out.Created, 1)
		require.Equal(t, map[string]order.Status{first.OrderSn: order.Created}, out.Existing, "a message that came twice is known by the number")
		require.False(t, h.bets.take())
		require.EqualValues(t, 4, h.balanced(sale.GoodsID))
	})
}

func TestBetsAreTakenAgain(t *testing.T) {
	var b bets
	require.True(t, b.take())
	b.lost()
	for range afterLoss {
		require.False(t, b.take())
	}
	require.True(t, b.take())
}
