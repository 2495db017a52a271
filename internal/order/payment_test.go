package order_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
	"flashsale.dev/seckill/internal/paymentprovider"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/sqlstore"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestReceive_QueuedOrderIsConflictUntilWritten checks that the payment service refuses a callback
// until the consumer has written the order. The provider must repeat such a callback, and the
// service must store nothing of it.
func TestReceive_QueuedOrderIsConflictUntilWritten(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(5, 2)
	_, err := h.Purchases.Place(t.Context(), h.request(sale.GoodsID, 7, 2))
	require.Equal(t, apierror.Unavailable, apierror.ReasonOf(err), "no consumer is running")
	var sn string
	for page, err := range h.redis.PendingPages(t.Context(), sale.GoodsID, 10) {
		require.NoError(t, err)
		require.Len(t, page, 1)
		sn = page[0].OrderSn
	}
	receive := func(id, sn string) (payment.Receipt, error) {
		return h.Payments.Receive(t.Context(), payment.Payment{ID: id, OrderSn: sn, Amount: 500})
	}
	_, err = receive("p-1", sn)
	require.Equal(t, apierror.Conflict, apierror.ReasonOf(err))
	refusal, ok := errors.AsType[*apierror.Error](err)
	require.True(t, ok)
	require.Equal(t, time.Second, refusal.RetryAfter)
	h.runWorkers(settings())
	h.becomes(7, sn, order.Created)
	r := must.Get(receive("p-1", sn))(t)
	require.Equal(t, payment.Kept, r.State)
	require.Equal(t, order.Paid, h.find(7, sn).Status)
	for _, invented := range []string{"", "o-1", strings.Repeat("0", 58), sn[:len(sn)-1] + "!"} {
		_, err = receive("p-2", invented)
		require.Equal(t, apierror.NotFound, apierror.ReasonOf(err), invented)
	}
	unreserved := h.numbered(sale.GoodsID, sale.Epoch, 7)
	_, err = receive("p-2", unreserved.OrderSn)
	require.Equal(t, apierror.NotFound, apierror.ReasonOf(err), "a number without a reservation")
	_, err = h.Orders.Find(t.Context(), buyer(8), unreserved.OrderSn)
	require.Equal(t, apierror.NotFound, apierror.ReasonOf(err), "another buyer's")
	require.Equal(t, order.Failed, h.find(7, unreserved.OrderSn).Status)
	usable := h.keys.Issue(sale.GoodsID, "7", time.Now()).String()
	require.Equal(t, order.Queued, h.find(7, usable).Status, "its path can still buy")
	h.settles(sale.GoodsID, 3, 2)
}

// TestHandle_ReturnReportedBeforeItsPaymentCancelsTheOrder reports a refund at the provider, or a
// lost dispute, before the payment that it returns. The order would stay paid with money that it
// does not have.
func TestHandle_ReturnReportedBeforeItsPaymentCancelsTheOrder(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(5, 2)
	h.runWorkers(settings())
	for kind, reason := range map[payment.ReversalKind]payment.RefundReason{
		payment.ReversalRefund:  payment.RefundByMerchant,
		payment.ReversalDispute: payment.RefundDispute,
	} {
		sn := h.buy(sale.GoodsID, 7, 2)
		h.becomes(7, sn, order.Created)
		p := payment.Payment{
			ID: "p-" + string(kind), GoodsID: sale.GoodsID, OrderSn: sn, Amount: 500,
		}
		for range 2 {
			must.Get(h.Payments.Handle(t.Context(), payment.Event{
				Reversal: &payment.Reversal{
					ID: "r-" + string(kind), Kind: kind, GoodsID: sale.GoodsID, OrderSn: sn,
					PaymentID: p.ID, Amount: p.Amount, Currency: "EUR", At: time.Now(),
				},
				Returned: &p, Refunds: []string{"r-" + string(kind)},
			}))(t)
			require.Equal(t, order.Cancelled, h.find(7, sn).Status, kind)
		}
		r := must.Get(h.Payments.Receive(t.Context(), p))(t)
		require.Equal(t, payment.Refunded, r.State, kind)
		require.Equal(t, reason, r.Reason, kind)
		h.settles(sale.GoodsID, 5, 0)
	}
}

// counter is a store that counts changes and records how many run at the same time.
type counter struct {
	*sqlstore.Store
	inside, most, asked atomic.Int32
}

func (c *counter) count(n int) (done func()) {
	c.asked.Add(int32(n))
	inside := c.inside.Add(1)
	for most := c.most.Load(); most < inside; most = c.most.Load() {
		c.most.CompareAndSwap(most, inside)
	}
	return func() { c.inside.Add(-1) }
}

func (c *counter) Cancel(
	ctx context.Context, goodsID int64, sns []string, now time.Time,
) ([]payment.Cancellation, error) {
	defer c.count(len(sns))()
	return c.Store.Cancel(ctx, goodsID, sns, now)
}

func (c *counter) Receive(
	ctx context.Context, goodsID int64, payments []payment.Payment, now time.Time,
) ([]payment.Receipt, error) {
	defer c.count(len(payments))()
	return c.Store.Receive(ctx, goodsID, payments, now)
}

// TestPayments_ConcurrentCallsHaveOneTransactionAtATime checks that concurrent payments of a goods
// never have two transactions at once, and that each gets its own order; the same for
// cancellations.
func TestPayments_ConcurrentCallsHaveOneTransactionAtATime(t *testing.T) {
	const buyers = 8
	h := newFixture(t)
	sale := h.exposeSale(2*buyers, 1)
	h.runWorkers(settings())
	sns := make([]string, 2*buyers)
	for i := range sns {
		sns[i] = h.buy(sale.GoodsID, int64(i+1), 1)
	}
	for i, sn := range sns {
		h.becomes(int64(i+1), sn, order.Created)
	}
	store := &counter{Store: h.store}
	payments := payment.NewService(h.Orders, store, h.releaser(), paymentprovider.Test{},
		h.parts.Log)
	type change struct {
		first  int // index of the first buyer
		call   func(context.Context, seckill.Actor, string) (order.Order, error)
		status order.Status
	}
	for _, c := range []change{
		{0, payments.Pay, order.Paid}, {buyers, payments.Cancel, order.Cancelled},
	} {
		var running sync.WaitGroup
		for i, sn := range sns[c.first : c.first+buyers] {
			running.Go(func() {
				o, err := c.call(t.Context(), buyer(int64(c.first+i+1)), sn)
				assert.NoError(t, err)
				assert.Equal(t, c.status, o.Status)
				assert.Equal(t, sn, o.OrderSn)
			})
		}
		running.Wait()
		require.EqualValues(t, 1, store.most.Load(), "two transactions of a goods at once")
		require.EqualValues(t, buyers, store.asked.Swap(0))
	}
	_, err := payments.Cancel(t.Context(), buyer(1), sns[0])
	require.Equal(t, apierror.Conflict, apierror.ReasonOf(err), "a paid order can't be cancelled")
	h.settles(sale.GoodsID, buyers, buyers)
}
