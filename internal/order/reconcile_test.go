package order_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/outbox"
	"flashsale.dev/seckill/internal/order/reconcile"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/sqlstore"
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
	for _, field := range []string{"avail", "sold"} {
		t.Run(field, func(t *testing.T) {
			h := newFixture(t)
			sale := h.exposeSale(5, 2)
			var log bytes.Buffer
			r := h.reconciler(slog.New(slog.NewTextHandler(&log, nil)))
			must.Get(h.mini.HIncrBy(fmt.Sprintf("sk:{%d}", sale.GoodsID), field, -2))(t)
			require.Zero(t, h.reconcileOnce(r, sale.GoodsID).Found,
				"one round may read a sale during a purchase")
			for range 2 {
				require.Equal(t, seckill.Differences{Totals: 1},
					h.reconcileOnce(r, sale.GoodsID).Found)
			}
			require.Equal(t, 2, strings.Count(log.String(), "difference=totals"))
			l := h.ledger(sale.GoodsID)
			require.False(t, l.Balanced)
			require.Equal(t, seckill.Differences{Totals: 1}, l.Differences)
		})
	}
}

// TestReconcile_ReportsTotalsAfterAMoveOnItsWay checks that different totals are reported although
// a stock move was on its way when they were first compared. It changes nothing in Redis.
func TestReconcile_ReportsTotalsAfterAMoveOnItsWay(t *testing.T) {
	h := newFixture(t)
	goods := h.exposeSale(5, 2).GoodsID
	l := h.released(goods, 7)
	r := h.reconciler(h.parts.Log)
	must.Get(h.mini.HIncrBy(fmt.Sprintf("sk:{%d}", goods), "avail", -2))(t)
	move := must.Get(h.store.ScheduleRelease(t.Context(), goods, l, time.Now()))(t)
	for range 2 {
		require.Zero(t, h.reconcileOnce(r, goods).Found)
	}
	h.releaser().Release(t.Context(), []order.StockMove{move})
	require.Equal(t, seckill.Differences{Totals: 1}, h.reconcileOnce(r, goods).Found)
}

// TestReconcile_ReportsMovesThatWaitTooLong checks from which age a stock move that Redis lacks is
// a difference. One that is dated ahead of every planned return waits too long: MySQL's clock was
// set back.
func TestReconcile_ReportsMovesThatWaitTooLong(t *testing.T) {
	h := newFixture(t)
	goods := h.exposeSale(5, 2).GoodsID
	must.Get(h.store.Change(t.Context(), goods, salechange.Change{StockDelta: 3},
		salechange.IdempotencyKey{}, time.Now()))(t)
	r := h.reconciler(h.parts.Log)
	for age, moves := range map[time.Duration]int{
		0: 0, 7 * time.Second: 1, -order.ReturnAfter: 0, -order.ReturnAfter - 9*time.Second: 1,
	} {
		h.exec(`UPDATE stock_moves SET made_at = ?`, time.Now().Add(-age).UnixMilli())
		want := seckill.Differences{Unreleased: moves}
		require.Equal(t, want, h.reconcileOnce(r, goods).Found, age)
		require.Equal(t, want, h.ledger(goods).Differences, age)
	}
}

// TestReconcile_ClockSetBackHidesNoOrder checks that a written order is settled although Redis'
// clock was set back by an hour since its reservation.
func TestReconcile_ClockSetBackHidesNoOrder(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(5, 2)
	h.queue.down.Store(true)
	sn := h.buy(sale.GoodsID, 7, 1)
	h.commit(sale.GoodsID, h.pending(sale.GoodsID, sn)...)
	h.mini.SetTime(time.Now().Add(-time.Hour))
	h.aged(6 * time.Second)
	require.Equal(t, 1, h.reconcileOnce(h.reconciler(h.parts.Log), sale.GoodsID).Repaired)
	l := h.ledger(sale.GoodsID)
	require.Zero(t, l.Pending)
	require.EqualValues(t, 1, l.Sold)
}

// TestReconcile_ReturnsUnitsOfFailedOrder checks that the reconciler returns the units of a failed
// order. Redis adopted the order after MySQL recorded the failure and the releaser applied its
// stock move.
func TestReconcile_ReturnsUnitsOfFailedOrder(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(5, 2)
	h.requireReturned(sale, h.released(sale.GoodsID, 7))
}

// requireReturned has Redis take the units of a released order again. It requires the reconciler to
// return them to a sale that has no other order.
func (h *fixture) requireReturned(sale seckill.Sale, l reservation.OrderLine) {
	must.Get(h.redis.Retake(h.t.Context(), sale.GoodsID, 1, 2, l))(h.t)
	h.mini.SetTime(time.Now().Add(6 * time.Second))
	h.aged(6 * time.Second)
	var log bytes.Buffer
	r := h.reconciler(slog.New(slog.NewTextHandler(&log, nil)))
	report := h.reconcileOnce(r, sale.GoodsID)
	require.Equal(h.t, seckill.Differences{Unsettled: 1}, report.Found)
	require.Equal(h.t, 1, report.Repaired)
	require.Contains(h.t, log.String(), l.OrderSn)
	h.runWorkers(settings())
	h.settles(sale.GoodsID, sale.Total, 0)
}

// TestReconcile_ReturnsUnitsOfCancelledOrder checks that the reconciler returns the units that
// Redis took again for an order after its cancellation was applied. Settling would count them as
// sold.
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
	h.requireReturned(sale,
		reservation.OrderLine{OrderSn: sn, BuyerID: "7", Quantity: 2, Epoch: 1})
}

// TestReconciler_ReloadsMissingHoldings checks that the reconciler finds a holding that Redis has
// lost, although all sums agree, and that a rebuild restores it. Without it the buyer could exceed
// the limit.
func TestReconciler_ReloadsMissingHoldings(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(10, 2)
	stop := h.runWorkers(settings())
	for _, id := range []int64{7, 8} {
		h.becomes(id, h.buy(sale.GoodsID, id, 2), order.Created)
	}
	cancelled := h.buy(sale.GoodsID, 9, 2)
	h.becomes(9, cancelled, order.Created)
	must.Get(h.Payments.Cancel(t.Context(), buyer(9), cancelled))(t)
	h.settles(sale.GoodsID, 6, 4)
	stop()
	r := h.reconciler(h.parts.Log)
	compare := func() seckill.View {
		t.Helper()
		v := h.view(sale.GoodsID)
		require.NoError(t, r.CompareHoldings(t.Context(), v))
		return h.view(sale.GoodsID)
	}
	require.Equal(t, seckill.GateOpen, compare().Gate)

	h.mini.HDel(fmt.Sprintf("sk:{%d}:buyers", sale.GoodsID), "7")
	require.True(t, h.ledger(sale.GoodsID).Balanced)
	h.runWorkers(settings())
	require.Eventually(t, func() bool {
		v, err := h.redis.View(t.Context(), sale.GoodsID)
		return err == nil && v.Epoch == 2 && v.Gate == seckill.GateOpen
	}, within, tick)
	h.settles(sale.GoodsID, 6, 4)
	_, err := h.Purchases.Place(t.Context(), h.request(sale.GoodsID, 7, 1))
	require.Equal(t, apierror.LimitReached, apierror.ReasonOf(err))
	require.EqualValues(t, 2, compare().Epoch)
}

// racingRedis is a Redis that runs a step after holdings were read.
type racingRedis struct {
	reconcile.Redis
	step func()
}

func (r racingRedis) NotHeld(
	ctx context.Context, goodsID int64, orders []order.Held,
) ([]string, error) {
	absent, err := r.Redis.NotHeld(ctx, goodsID, orders)
	r.step()
	return absent, err
}

// racingStore is a store that runs a step between its orders and the holdings that are compared.
type racingStore struct {
	*sqlstore.Store
	step func()
}

func (s racingStore) HoldingPages(
	ctx context.Context, goodsID, epoch int64, redisNow time.Time,
) iter.Seq2[[]order.Held, error] {
	return func(yield func([]order.Held, error) bool) {
		for page, err := range s.Store.HoldingPages(ctx, goodsID, epoch, redisNow) {
			s.step()
			if !yield(page, err) {
				return
			}
		}
	}
}

// TestCompareHoldings_SparesASaleThatGoesOn checks that the gate stays open if an order is
// cancelled, or another epoch is opened, during the comparison.
func TestCompareHoldings_SparesASaleThatGoesOn(t *testing.T) {
	for _, moment := range []string{"cancelled", "rebuilt"} {
		t.Run(moment, func(t *testing.T) {
			h := newFixture(t)
			sale := h.exposeSale(10, 2)
			stop := h.runWorkers(settings())
			sn := h.buy(sale.GoodsID, 7, 2)
			h.becomes(7, sn, order.Created)
			h.settles(sale.GoodsID, 8, 2)
			stop()
			cancel := func() {
				must.Get(h.Payments.Cancel(t.Context(), buyer(7), sn))(t)
				h.settles(sale.GoodsID, 10, 0)
			}
			open := func() {
				must.Get(h.redis.Shut(t.Context(), sale.GoodsID, 1))(t)
				require.NoError(t, h.beginEpoch(sale.GoodsID, func() {}))
			}
			r := h.reconciler(h.parts.Log)
			if moment == "cancelled" {
				r.Store = racingStore{h.store, cancel}
			} else {
				h.mini.HDel(fmt.Sprintf("sk:{%d}:buyers", sale.GoodsID), "7")
				r.Redis = racingRedis{h.redis, open}
			}
			v := h.view(sale.GoodsID)
			require.NoError(t, r.CompareHoldings(t.Context(), v))
			require.Equal(t, seckill.GateOpen,
				h.view(sale.GoodsID).Gate)
		})
	}
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
	h.aged(6 * time.Second)
	l := h.ledger(sale.GoodsID)
	require.False(t, l.Balanced, "an order that is written and still pending after 5 s: %+v", l)
	require.Equal(t, 1, l.Differences.Unsettled)
	report := h.reconcileOnce(h.reconciler(h.parts.Log), sale.GoodsID)
	require.Equal(t, reconcile.Report{
		Found: seckill.Differences{Unsettled: 1}, Repaired: 1,
	}, report)
	h.settles(sale.GoodsID, 0, 5)
	require.Equal(t, order.Created, h.find(7, sn).Status)
}

// sentQueue counts the messages that it confirms and loses.
type sentQueue struct{ sent int }

func (q *sentQueue) Publish(context.Context, int64, []byte) error {
	q.sent++
	return nil
}

// TestReconcile_RepublishesUnwrittenOrders checks the ages at which an order is published again
// that the queue has confirmed and lost. It checks from which age the order is a difference. After
// Redis' clock was set back its age is unknown, and it is published again each minute.
func TestReconcile_RepublishesUnwrittenOrders(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(5, 2)
	h.queue.down.Store(true)
	sn := h.buy(sale.GoodsID, 7, 2)
	h.confirmAll(sale.GoodsID)
	var reserved time.Time
	for page, err := range h.redis.PendingPages(t.Context(), sale.GoodsID, 10) {
		require.NoError(t, err)
		reserved = page[0].At
	}
	var log bytes.Buffer
	r, q := h.reconciler(slog.New(slog.NewTextHandler(&log, nil))), &sentQueue{}
	r.Publisher.Queue = q
	const ms = time.Millisecond
	for _, c := range []struct {
		age              time.Duration
		unwritten, again int
	}{
		{-time.Hour, 1, 1},
		{-59*time.Minute - 52*time.Second, 1, 0},
		{-59 * time.Minute, 1, 1},
		{-4 * time.Second, 0, 0},
		{time.Second, 0, 0},
		{time.Minute - ms, 0, 0},
		{time.Minute, 0, 1},
		{67500 * ms, 1, 1},
		{67501 * ms, 1, 0},
		{2*time.Minute - ms, 1, 0},
		{2 * time.Minute, 1, 1},
		{3 * time.Minute, 1, 0},
		{4*time.Minute + ms, 1, 1},
	} {
		h.mini.SetTime(reserved.Add(c.age))
		q.sent = 0
		report := h.reconcileOnce(r, sale.GoodsID)
		require.Equal(t, reconcile.Report{
			Found:    seckill.Differences{Unwritten: c.unwritten},
			Repaired: c.again,
		}, report, c.age)
		require.Equal(t, c.again, q.sent, c.age)
	}
	require.Equal(t, 9, strings.Count(log.String(), "difference=unwritten order_sn="+sn))
	require.Equal(t, seckill.Differences{Unwritten: 1}, h.ledger(sale.GoodsID).Differences)
}

// TestReconcile_ParkedOrderKeepsItsUnits checks that an order whose adopter took units and stopped
// before the commit is published again. MySQL has it as parked, and its units do not return.
func TestReconcile_ParkedOrderKeepsItsUnits(t *testing.T) {
	h := newFixture(t)
	goods := h.exposeSale(5, 2).GoodsID
	l := h.numbered(goods, 0, 7)
	adopted := must.Get(h.redis.Adopt(t.Context(), goods, 1, 2, []reservation.OrderLine{l}))(t)
	require.EqualValues(t, 1, adopted[l.OrderSn])
	h.park(goods, l)
	h.mini.SetTime(time.Now().Add(time.Minute + time.Second))
	r := h.reconciler(h.parts.Log)
	r.Publisher.Queue = &sentQueue{}
	require.Equal(t, reconcile.Report{
		Found: seckill.Differences{Unwritten: 1}, Repaired: 1,
	}, h.reconcileOnce(r, goods))
	require.EqualValues(t, 1, h.ledger(goods).Pending)
}

// TestLedger_LostSaleHasNoneAfterItsEnd checks that a sale that Redis lost after its end has no
// ledger until it is built again. MySQL alone would balance without the order that is in the queue.
func TestLedger_LostSaleHasNoneAfterItsEnd(t *testing.T) {
	h := newFixture(t)
	goods := h.exposeSale(5, 2).GoodsID
	h.exec(`UPDATE sales SET end_at = ?`, time.Now().Add(-time.Second).UnixMilli())
	h.mini.FlushAll()
	_, err := h.Sales.Ledger(t.Context(), operator, goods)
	require.Equal(t, apierror.Unavailable, apierror.ReasonOf(err), "%v", err)
	h.runWorkers(settings())
	h.publish(goods, h.lines(goods, h.numbered(goods, 1, 7)))
	h.settles(goods, 4, 1)
}

// TestLedger_RetiredSaleNeedsNoRedis checks that a retired sale has a ledger while Redis is down.
func TestLedger_RetiredSaleNeedsNoRedis(t *testing.T) {
	h := newFixture(t)
	goods := h.exposeSale(5, 2).GoodsID
	h.exec(`UPDATE sales SET retired_at = ?`, time.Now().UnixMilli())
	h.mini.Close()
	l := h.ledger(goods)
	require.EqualValues(t, []int64{5, 5, 0}, []int64{l.Total, l.Available, l.Sold})
	require.True(t, l.Balanced)
}
