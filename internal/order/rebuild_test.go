package order_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/reconcile"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestRebuild_RestoresLostSale checks that the rebuilder restores a sale from MySQL after Redis
// lost all its data.
func TestRebuild_RestoresLostSale(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(10, 2)
	h.runWorkers(settings())
	sn := h.buy(sale.GoodsID, 7, 2)
	h.becomes(7, sn, order.Created)
	h.settles(sale.GoodsID, 8, 2)
	h.mini.FlushAll()
	_, err := h.Catalog.Admit(t.Context(), sale.GoodsID)
	require.Equal(t, seckill.Unavailable, seckill.ReasonOf(err), "a shut gate is a 503")
	h.settles(sale.GoodsID, 8, 2)
	require.EqualValues(t, 2, h.ledger(sale.GoodsID).Epoch)
	_, err = h.Purchases.Place(t.Context(), h.request(sale.GoodsID, 7, 1))
	require.Equal(t, seckill.LimitReached, seckill.ReasonOf(err),
		"the rebuild restored the buyer's holding from MySQL")
	h.becomes(8, h.buy(sale.GoodsID, 8, 2), order.Created)
}

// TestRebuild_LateOrdersTakeRemainingUnits checks that orders of a lost epoch take the units that
// are left. Orders beyond them fail.
func TestRebuild_LateOrdersTakeRemainingUnits(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(1, 1)
	late, tooLate := h.numbered(sale.GoodsID, 1, 1), h.numbered(sale.GoodsID, 1, 2)
	h.mini.FlushAll() // the reservations are lost, too
	h.runWorkers(settings())
	h.settles(sale.GoodsID, 1, 0)
	h.publish(sale.GoodsID, h.lines(sale.GoodsID, late))
	h.becomes(1, late.OrderSn, order.Created)
	h.publish(sale.GoodsID, h.lines(sale.GoodsID, tooLate, late))
	o := h.becomes(2, tooLate.OrderSn, order.Failed)
	require.Equal(t, order.FailedLost, o.FailureReason)
	h.settles(sale.GoodsID, 0, 1)
}

// TestTombstone_LateMessageDoesNotCreateOrder checks that an order with a tombstone stays failed
// when its message arrives. A publisher that was suspended during the rebuild sends the message
// several times, also in a group.
func TestTombstone_LateMessageDoesNotCreateOrder(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(5, 2)
	asked, unasked := h.numbered(sale.GoodsID, 1, 1), h.numbered(sale.GoodsID, 1, 2)
	h.mini.FlushAll()
	h.runWorkers(settings())
	h.settles(sale.GoodsID, 5, 0)
	o := h.find(1, asked.OrderSn)
	require.Equal(t, order.Failed, o.Status)
	require.Equal(t, order.FailedLost, o.FailureReason)
	h.publish(sale.GoodsID, h.lines(sale.GoodsID, unasked, asked, asked))
	h.publish(sale.GoodsID, h.lines(sale.GoodsID, asked))
	h.becomes(2, unasked.OrderSn, order.Created)
	h.settles(sale.GoodsID, 4, 1)
	o = h.find(1, asked.OrderSn)
	require.Equal(t, order.Failed, o.Status)
	require.EqualValues(t, 1, o.Quantity, "the message completes the row of the tombstone")
	deadLetters := h.deadLetters()
	require.Len(t, deadLetters, 1, "the late message is stored once as a dead letter")
	revived := must.Get(h.DeadLetters.Requeue(t.Context(), deadLetters[0].ID))(t)
	require.Equal(t, order.Created, revived.Status)
	h.settles(sale.GoodsID, 3, 2)
}

// TestTombstone_AdoptedUnitsReturn checks that units return to the sale if Redis adopted a late
// order before the buyer's query wrote its tombstone.
func TestTombstone_AdoptedUnitsReturn(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(5, 2)
	late := h.numbered(sale.GoodsID, 1, 1)
	h.mini.FlushAll()
	stop := h.runWorkers(settings())
	h.settles(sale.GoodsID, 5, 0)
	stop()
	tombstone := order.Order{
		OrderLine: reservation.OrderLine{OrderSn: late.OrderSn, BuyerID: 9},
		GoodsID:   sale.GoodsID, Epoch: 1, Status: order.Failed, FailureReason: order.FailedLost,
	}
	must.Get(h.redis.Adopt(t.Context(), sale.GoodsID, 2, 2, []reservation.OrderLine{late}))(t)
	must.Get(h.store.WriteTombstone(t.Context(), tombstone))(t)
	require.Equal(t, order.Failed, h.find(1, late.OrderSn).Status,
		"a tombstone shows the order to any buyer who has its number")
	h.runWorkers(settings())
	h.publish(sale.GoodsID, h.lines(sale.GoodsID, late))
	h.settles(sale.GoodsID, 5, 0)
	h.becomes(1, h.buy(sale.GoodsID, 1, 2), order.Created)
}

// TestReconcile_SettlesWrittenOrders checks that the reconciler settles an order after a crash
// between the commit and the settling. The queue does not deliver the message again.
func TestReconcile_SettlesWrittenOrders(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(5, 5)
	h.queue.down.Store(true)
	sn := h.buy(sale.GoodsID, 7, 5)
	h.commit(sale.GoodsID, h.pending(sale.GoodsID, sn)...)
	h.confirmAll(sale.GoodsID)
	reconciler := h.reconciler(h.parts.Log)
	require.Equal(t, order.Queued, h.find(7, sn).Status,
		"an unsettled commit may still be lost")
	h.mini.SetTime(time.Now().Add(6 * time.Second)) // six seconds after the order, by Redis' clock
	l := h.ledger(sale.GoodsID)
	require.False(t, l.Balanced, "an order that is written and still pending after 5 s: %+v", l)
	require.Equal(t, 1, l.Differences.Unsettled)
	report := must.Get(reconciler.Reconcile(t.Context(), sale.GoodsID))(t)
	require.Equal(t, reconcile.Report{
		GoodsID: sale.GoodsID, Found: seckill.Differences{Unsettled: 1}, Repaired: 1,
	}, report)
	h.settles(sale.GoodsID, 0, 5)
	require.Equal(t, order.Created, h.find(7, sn).Status)
}

// confirmAll empties the outbox. The state is then as after a queue that confirmed all messages and
// lost them.
func (h *fixture) confirmAll(goods int64) {
	entries := must.Get(h.redis.Unconfirmed(h.t.Context(), goods, 0, 100))(h.t)
	for _, e := range entries {
		require.NoError(h.t, h.redis.Confirmed(h.t.Context(), goods, e.ID))
	}
}

// markedQueue is a queue that the republisher can mark as republished.
type markedQueue struct{ *flakyQueue }

func (*markedQueue) MarkRepublished(context.Context, int) error { return nil }

// TestRepublisher_PublishesLostMessages checks that the republisher publishes pending orders again
// after the broker reports a new queue.
func TestRepublisher_PublishesLostMessages(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(5, 5)
	h.queue.down.Store(true)
	sn := h.buy(sale.GoodsID, 7, 2)
	h.confirmAll(sale.GoodsID)
	h.queue.down.Store(false)
	fresh := make(chan int, 1)
	h.parts.NewQueues, h.parts.Queue = fresh, &markedQueue{h.queue}
	h.runWorkers(settings())
	fresh <- 0
	h.becomes(7, sn, order.Created)
	h.settles(sale.GoodsID, 3, 2)
}
