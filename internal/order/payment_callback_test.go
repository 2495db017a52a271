package order_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestReceive_QueuedOrderIsConflictUntilWritten checks that the payment service refuses a callback
// until the consumer has written the order. The provider must repeat such a callback, and the
// service must store nothing of it.
func TestReceive_QueuedOrderIsConflictUntilWritten(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(5, 2)
	_, err := h.Purchases.Place(t.Context(), h.request(sale.GoodsID, 7, 2))
	require.Equal(t, seckill.Unavailable, seckill.ReasonOf(err), "no consumer is running")
	waiting, _, err := h.redis.PendingPage(t.Context(), sale.GoodsID, 0, 10)
	require.NoError(t, err)
	require.Len(t, waiting, 1)
	sn := waiting[0].OrderSn
	_, err = h.Payments.Receive(t.Context(), "p-1", sn, 500)
	require.Equal(t, seckill.Conflict, seckill.ReasonOf(err))
	refusal, ok := errors.AsType[*seckill.Error](err)
	require.True(t, ok)
	require.Equal(t, time.Second, refusal.RetryAfter)
	h.runWorkers(settings())
	h.becomes(7, sn, order.Created)
	r := must.Get(h.Payments.Receive(t.Context(), "p-1", sn, 500))(t)
	require.Equal(t, payment.Kept, r.State)
	require.Equal(t, order.Paid, h.find(7, sn).Status)
	for _, invented := range []string{"", "o-1", strings.Repeat("0", 58), sn[:57] + "x"} {
		_, err = h.Payments.Receive(t.Context(), "p-2", invented, 500)
		require.Equal(t, seckill.NotFound, seckill.ReasonOf(err), invented)
	}
	unreserved := h.numbered(sale.GoodsID, sale.Epoch, 7)
	_, err = h.Payments.Receive(t.Context(), "p-2", unreserved.OrderSn, 500)
	require.Equal(t, seckill.NotFound, seckill.ReasonOf(err), "a number without a reservation")
	h.settles(sale.GoodsID, 3, 2)
}
