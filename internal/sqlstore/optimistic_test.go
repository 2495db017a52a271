package sqlstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
)

// TestWriteOptimistically_FailureLeavesNothing checks that a failed optimistic insert writes
// nothing. A second transaction then reads first and writes the batch. The next batches also read
// first.
func (h fixture) TestWriteOptimistically_FailureLeavesNothing(t *testing.T) {
	sale := h.exposed(10, 2)
	first := h.line(sale, 1, 1)
	require.Len(t, h.writeAll(sale.GoodsID, first).Created, 1)
	require.True(t, h.optimism.try(), "a batch of new buyers succeeds optimistically")

	again, stranger := h.line(sale, 1, 1), h.line(sale, 2, 1)
	require.Len(t, h.writeAll(sale.GoodsID, stranger, again).Created, 2,
		"the key of the holding detects a returning buyer")
	for range pauseBatches {
		require.False(t, h.optimism.try(), "the next batches read first")
	}
	require.True(t, h.optimism.try())

	h.optimism.paused.Store(0)
	out := h.writeAll(sale.GoodsID, h.line(sale, 3, 1), first)
	require.Len(t, out.Created, 1)
	require.Equal(t, map[string]order.Status{first.OrderSn: order.Created}, out.Existing,
		"the key of the order number detects a repeated message")
	require.False(t, h.optimism.try())
	require.EqualValues(t, 4, h.requireBalanced(sale.GoodsID))
}
