package order_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/outbox"
	"flashsale.dev/seckill/internal/order/reconcile"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
)

// reconciler returns a reconciler that does not run.
func (h *fixture) reconciler(log *slog.Logger) *reconcile.Reconciler {
	return &reconcile.Reconciler{
		LedgerReader: reconcile.LedgerReader{Store: h.store, Redis: h.redis}, Log: log,
		Publisher: &outbox.Publisher{Store: h.redis, Queue: h.queue, Timeout: time.Second},
	}
}

// reconcileOnce reconciles a sale once.
func (h *fixture) reconcileOnce(r *reconcile.Reconciler, goods int64) reconcile.Report {
	h.t.Helper()
	return must.Get(r.Reconcile(h.t.Context(), goods))(h.t)
}

// TestReconcile_ReportsDifferentTotals checks that the reconciler reports different totals from the
// second round on. A single round may read Redis and MySQL while a purchase is in flight.
func TestReconcile_ReportsDifferentTotals(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(5, 2)
	var log bytes.Buffer
	r := h.reconciler(slog.New(slog.NewTextHandler(&log, nil)))
	must.Get(h.mini.HIncrBy(fmt.Sprintf("sk:{%d}", sale.GoodsID), "avail", -2))(t)
	require.Zero(t, h.reconcileOnce(r, sale.GoodsID).Found,
		"one round may read a sale during a purchase")
	for range 2 {
		require.Equal(t, seckill.Differences{Totals: 1}, h.reconcileOnce(r, sale.GoodsID).Found)
	}
	require.Equal(t, 2, strings.Count(log.String(), "difference=totals"))
	l := h.ledger(sale.GoodsID)
	require.False(t, l.Balanced)
	require.Equal(t, seckill.Differences{Totals: 1}, l.Differences)
}

// TestReconcile_ReturnsUnitsOfFailedOrder checks that the reconciler returns the units of a failed
// order. Redis adopted the order after MySQL recorded the failure and the releaser applied its
// stock move.
func TestReconcile_ReturnsUnitsOfFailedOrder(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(5, 2)
	l := h.numbered(sale.GoodsID, 1, 7)
	out := must.Get(h.store.WriteFailed(t.Context(), sale.GoodsID, l, order.FailedUnwritten,
		order.DeadLetter{}, time.Now()))(t)
	h.releaser().Release(t.Context(), out.Moves)
	must.Get(h.redis.Adopt(t.Context(), sale.GoodsID, 1, 0, []reservation.OrderLine{l}))(t)
	h.mini.SetTime(time.Now().Add(6 * time.Second))
	var log bytes.Buffer
	r := h.reconciler(slog.New(slog.NewTextHandler(&log, nil)))
	report := h.reconcileOnce(r, sale.GoodsID)
	require.Equal(t, seckill.Differences{Unsettled: 1}, report.Found)
	require.Equal(t, 1, report.Repaired)
	require.Contains(t, log.String(), l.OrderSn)
	h.runWorkers(settings())
	h.settles(sale.GoodsID, 5, 0)
}

// TestReconcile_ReturnsUnitsOfCancelledOrder checks that the reconciler returns the units that Redis
// took again for an order after its cancellation was applied. Settling would count them as sold.
func TestReconcile_ReturnsUnitsOfCancelledOrder(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(5, 2)
	stop := h.runWorkers(settings())
	sn := h.buy(sale.GoodsID, 7, 2)
	h.becomes(7, sn, order.Created)
	h.settles(sale.GoodsID, 3, 2)
	must.Get(h.Payments.Cancel(t.Context(), buyer(7), sn))(t)
	h.settles(sale.GoodsID, 5, 0)
	stop()
	l := reservation.OrderLine{OrderSn: sn, BuyerID: 7, Quantity: 2, Epoch: 1}
	must.Get(h.redis.Adopt(t.Context(), sale.GoodsID, 1, 0, []reservation.OrderLine{l}))(t)
	h.mini.SetTime(time.Now().Add(6 * time.Second))
	report := h.reconcileOnce(h.reconciler(h.parts.Log), sale.GoodsID)
	require.Equal(t, seckill.Differences{Unsettled: 1}, report.Found)
	require.Equal(t, 1, report.Repaired)
	h.runWorkers(settings())
	h.settles(sale.GoodsID, 5, 0)
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
	require.Equal(t, order.Queued, h.find(7, sn).Status,
		"an unsettled commit may still be lost")
	h.mini.SetTime(time.Now().Add(6 * time.Second)) // six seconds after the order, by Redis' clock
	l := h.ledger(sale.GoodsID)
	require.False(t, l.Balanced, "an order that is written and still pending after 5 s: %+v", l)
	require.Equal(t, 1, l.Differences.Unsettled)
	report := h.reconcileOnce(h.reconciler(h.parts.Log), sale.GoodsID)
	require.Equal(t, reconcile.Report{
		GoodsID: sale.GoodsID, Found: seckill.Differences{Unsettled: 1}, Repaired: 1,
	}, report)
	h.settles(sale.GoodsID, 0, 5)
	require.Equal(t, order.Created, h.find(7, sn).Status)
}
