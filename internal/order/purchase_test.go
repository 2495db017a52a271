package order_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestPurchase_SucceedsWhileQueueIsDown checks that the purchase service accepts orders without the
// queue, and that the relay publishes them when the queue is up again. The buyer can then pay.
func TestPurchase_SucceedsWhileQueueIsDown(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(10, 5)
	h.queue.down.Store(true)
	sn := h.buy(sale.GoodsID, 7, 3)
	require.Equal(t, order.Queued, h.find(7, sn).Status)
	_, err := h.Payments.Pay(t.Context(), buyer(7), sn)
	require.Equal(t, seckill.Conflict, seckill.ReasonOf(err), "a queued order can't be paid")
	h.runWorkers(settings())
	h.queue.down.Store(false)
	o := h.becomes(7, sn, order.Created)
	require.EqualValues(t, 3*250, o.Amount)
	require.Equal(t, "韩梅梅", o.Name)
	require.WithinDuration(t, o.CreatedAt.Add(time.Hour), o.PayBy, time.Second)
	h.settles(sale.GoodsID, 7, 3)
	must.Get(h.Payments.Pay(t.Context(), buyer(7), sn))(t)
	h.becomes(7, sn, order.Paid)
	h.settles(sale.GoodsID, 7, 3)
	require.Eventually(t, func() bool { // the relay removes the entry after the order is settled
		v, err := h.redis.View(t.Context(), sale.GoodsID)
		return err == nil && v.Outbox == 0
	}, within, tick)
}

// TestPlace_RepeatedPathReturnsSameOrder checks that a used path returns its first order, even
// after the buyer cancelled it and with another quantity.
func TestPlace_RepeatedPathReturnsSameOrder(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(10, 5)
	h.runWorkers(settings())
	p := h.request(sale.GoodsID, 7, 1)
	first := must.Get(h.Purchases.Place(t.Context(), p))(t)
	h.becomes(7, first, order.Created)
	must.Get(h.Payments.Cancel(t.Context(), buyer(7), first))(t)
	p.Quantity = 4
	again := must.Get(h.Purchases.Place(t.Context(), p))(t)
	require.Equal(t, first, again)
	h.settles(sale.GoodsID, 10, 0)
}

func TestExpirer_ReturnsUnitsOfUnpaidOrders(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(2, 2)
	s := settings()
	s.PaymentTimeout = 50 * time.Millisecond
	h.runWorkers(s)
	sn := h.buy(sale.GoodsID, 7, 2)
	h.becomes(7, sn, order.Expired)
	h.settles(sale.GoodsID, 2, 0)
}

// TestWriter_WritesRegroupedDuplicatesOnce checks that the batch writer writes an order once even
// if several messages contain it.
func TestWriter_WritesRegroupedDuplicatesOnce(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(10, 5)
	h.queue.down.Store(true)
	var lines []reservation.OrderLine
	for id := range int64(4) {
		lines = append(lines, h.pending(sale.GoodsID, h.buy(sale.GoodsID, id+1, 1))...)
	}
	h.queue.down.Store(false)
	h.runWorkers(settings())
	h.publish(sale.GoodsID, h.lines(sale.GoodsID, lines[0], lines[1], lines[2]))
	h.publish(sale.GoodsID, h.lines(sale.GoodsID, lines[3], lines[2], lines[1], lines[1]))
	h.settles(sale.GoodsID, 6, 4)
	require.Empty(t, h.deadLetters())
}

// TestWriter_BadOrderDoesNotFailBatch checks that an unwritable order and an unreadable message
// become dead letters. The batch writer writes all other orders of the batch.
func TestWriter_BadOrderDoesNotFailBatch(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(10, 5)
	h.queue.down.Store(true)
	var lines []reservation.OrderLine
	for id := range int64(5) {
		lines = append(lines, h.pending(sale.GoodsID, h.buy(sale.GoodsID, id+1, 1))...)
	}
	bad := lines[2]
	lines[2].Name = strings.Repeat("x", 1000) // longer than the column
	h.queue.down.Store(false)
	h.publishLater(sale.GoodsID, h.lines(sale.GoodsID, lines...))
	h.publishLater(sale.GoodsID, []byte(`{"goodsId":`))
	h.runWorkers(settings())
	h.settles(sale.GoodsID, 6, 4)
	failed := h.find(3, bad.OrderSn)
	require.Equal(t, order.Failed, failed.Status)
	require.Equal(t, order.FailedUnwritten, failed.FailureReason)
	reasons := map[order.FailureReason]string{}
	for _, d := range h.deadLetters() {
		reasons[d.Reason] = d.OrderSn
	}
	require.Equal(t, map[order.FailureReason]string{
		order.FailedUnwritten: bad.OrderSn,
		order.FailedMalformed: "",
	}, reasons)
	h.becomes(3, h.buy(sale.GoodsID, 3, 5), order.Created)
}

// TestDeadLetters_CarryDeliveriesFirstSightAndOrigin checks that every dead letter records its
// number of deliveries, its publish time and its queue.
func TestDeadLetters_CarryDeliveriesFirstSightAndOrigin(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(1, 5)
	published := time.Now()
	unwritable, oversold := h.numbered(sale.GoodsID, 1, 7), h.numbered(sale.GoodsID, 1, 8)
	unwritable.Name, oversold.Quantity = strings.Repeat("x", 1000), 2
	h.publishLater(sale.GoodsID, []byte(`{"goodsId":`))
	h.publishLater(sale.GoodsID, h.lines(sale.GoodsID, unwritable, oversold))
	for range 2 { // a consumer takes both messages and stops without an ack
		stream := must.Get(h.queue.Open(t.Context(), 0))(t)
		<-stream.Deliveries()
		<-stream.Deliveries()
		require.NoError(t, stream.Close())
	}
	h.runWorkers(settings())
	require.Eventually(t, func() bool { return len(h.deadLetters()) == 3 }, within, tick)
	deadLetters := must.Get(h.DeadLetters.List(t.Context(), "", 10))(t)
	reasons := map[order.FailureReason]bool{}
	for _, d := range deadLetters {
		reasons[d.Reason] = true
		require.Equal(t, 3, d.Attempts, "%+v", d)
		require.Equal(t, "memory.0", d.Origin, "%+v", d)
		require.WithinRange(t, d.FirstSeenAt, published.Truncate(time.Millisecond), time.Now(),
			"%+v", d)
	}
	require.Len(t, reasons, 3)
}

// publishLater sends a message and does not wait for its confirm. The queue confirms it once the
// workers run.
func (h *fixture) publishLater(goods int64, body []byte) {
	h.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = h.queue.Publish(h.t.Context(), goods, body)
	}()
	h.t.Cleanup(func() { <-done })
}

// TestFind_RefusesForeignAndOthersNumbers checks that a buyer can read neither another buyer's
// order nor a number without an order.
func TestFind_RefusesForeignAndOthersNumbers(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(10, 5)
	h.runWorkers(settings())
	sn := h.buy(sale.GoodsID, 7, 1)
	h.becomes(7, sn, order.Created)
	reason := func(id int64, sn string) seckill.Reason {
		_, err := h.Orders.Find(t.Context(), buyer(id), sn)
		return seckill.ReasonOf(err)
	}
	require.Equal(t, seckill.Forbidden, reason(8, sn))
	require.Equal(t, seckill.NotFound, reason(7, "invented"))
	require.Equal(t, seckill.NotFound, reason(7, strings.Repeat("0", len(sn))))
	require.Equal(t, seckill.NotFound, reason(7, h.numbered(sale.GoodsID, 1, 7).OrderSn),
		"a minted number without a reservation")
}

// TestPlace_UnconfirmedOrderIsUnavailable checks that the purchase service answers 503 if an
// available queue does not confirm in time. A retry with the same path returns the order that the
// first request reserved.
func TestPlace_UnconfirmedOrderIsUnavailable(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(10, 5)
	p := h.request(sale.GoodsID, 7, 1)
	for range 2 { // no consumer runs, so the queue confirms nothing
		_, err := h.Purchases.Place(t.Context(), p)
		require.Equal(t, seckill.Unavailable, seckill.ReasonOf(err))
	}
	h.runWorkers(settings())
	sn := must.Get(h.Purchases.Place(t.Context(), p))(t)
	h.becomes(7, sn, order.Created)
	h.settles(sale.GoodsID, 9, 1)
}
