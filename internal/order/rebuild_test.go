package order_test

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/message"
	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/order/purchase"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/sqlstore"
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
	require.Equal(t, apierror.Unavailable, apierror.ReasonOf(err), "a shut gate is a 503")
	h.settles(sale.GoodsID, 8, 2)
	require.EqualValues(t, 2, h.ledger(sale.GoodsID).Epoch)
	_, err = h.Purchases.Place(t.Context(), h.request(sale.GoodsID, 7, 1))
	require.Equal(t, apierror.LimitReached, apierror.ReasonOf(err),
		"the rebuild restored the buyer's holding from MySQL")
	h.becomes(8, h.buy(sale.GoodsID, 8, 2), order.Created)
}

// pagedStore calls functions before and after a load has read the orders of its epoch.
type pagedStore struct {
	*sqlstore.Store
	before, after func()
}

func (s pagedStore) HoldingPages(
	ctx context.Context, goodsID, epoch int64, redisNow time.Time,
) iter.Seq2[[]order.Held, error] {
	return func(yield func([]order.Held, error) bool) {
		s.before()
		s.Store.HoldingPages(ctx, goodsID, epoch, redisNow)(yield)
		s.after()
	}
}

// TestExpose_NoRebuildBetweenMySQLAndRedis checks that a sale that is exposed in MySQL and not yet
// in Redis is not taken for one that Redis has lost.
func TestExpose_NoRebuildBetweenMySQLAndRedis(t *testing.T) {
	h := newFixture(t)
	rebuilding := func(sale seckill.Sale) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		_, err := h.rebuilder(h.store).Rebuild(ctx, sale.GoodsID, "test")
		return err
	}
	h.Sales.Opener.Store = pagedStore{h.store, func() {
		exposed := must.Get(h.store.LiveGoods(t.Context(), nil))(t)
		require.Len(t, exposed, 1)
		require.ErrorIs(t, rebuilding(exposed[0]), rebuild.ErrRebuilding)
	}, func() {}}
	sale := h.exposeSale(10, 2)
	require.EqualValues(t, 1, h.ledger(sale.GoodsID).Epoch)
	h.runWorkers(settings()) // the rebuild waits for its barrier
	require.NoError(t, rebuilding(sale), "the lock was released")
}

// TestRebuild_UnitsOfOrdersThatEndDuringALoad cancels orders between the beginning of an epoch and
// its load. They return their units once, whether or not the load has read them before. Their paths
// take nothing again, and their buyers may buy.
func TestRebuild_UnitsOfOrdersThatEndDuringALoad(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(10, 2)
	stop := h.runWorkers(settings())
	used, sns := make(map[int64]purchase.Request), make(map[int64]string)
	for _, id := range []int64{7, 8, 9} {
		used[id] = h.request(sale.GoodsID, id, 2)
		sns[id] = h.place(used[id])
		h.becomes(id, sns[id], order.Created)
	}
	h.settles(sale.GoodsID, 4, 6)
	stop()
	cancel := func(id int64) func() {
		return func() { must.Get(h.Payments.Cancel(t.Context(), buyer(id), sns[id]))(t) }
	}
	must.Get(h.redis.Shut(t.Context(), sale.GoodsID, 1))(t)
	opener := rebuild.Opener{
		Store: pagedStore{h.store, cancel(7), cancel(8)}, Redis: h.redis,
	}
	token := must.Get(h.store.NextRebuildToken(t.Context(), sale.GoodsID))(t).Number
	must.Get(opener.Open(t.Context(), sale.GoodsID, token))(t)
	h.runWorkers(settings())
	h.settles(sale.GoodsID, 8, 2)
	for id, again := range used {
		require.Equal(t, sns[id], must.Get(h.Purchases.Place(t.Context(), again))(t))
	}
	h.settles(sale.GoodsID, 8, 2)
	h.becomes(7, h.buy(sale.GoodsID, 7, 2), order.Created)
	h.becomes(8, h.buy(sale.GoodsID, 8, 2), order.Created)
	h.settles(sale.GoodsID, 4, 6)
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

// TestRebuild_ParkedOrdersGoFirst checks that late orders whose sale is shut are parked and do not
// block the queue. Their buyers read queued. The next epoch begins with them.
func TestRebuild_ParkedOrdersGoFirst(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(1, 1)
	late := h.numbered(sale.GoodsID, 0, 1)
	h.mini.FlushAll()
	must.Get(h.store.BeginEpoch(t.Context(), sale.GoodsID,
		must.Get(h.store.NextRebuildToken(t.Context(), sale.GoodsID))(t).Number,
		order.Times{Now: time.Now()}))(t)
	h.mini.SetError("LOADING Redis is loading the dataset in memory")
	stop := h.runWorkers(settings())
	h.publish(sale.GoodsID, h.lines(sale.GoodsID, late))
	require.Eventually(t, func() bool {
		parked, err := h.store.LateOrders(t.Context(), sale.GoodsID, "", 10)
		return err == nil && len(parked) == 1
	}, within, tick)
	stop()
	h.mini.SetError("")
	require.Equal(t, order.Queued, h.find(1, late.OrderSn).Status)
	_, err := h.Payments.Cancel(t.Context(), buyer(1), late.OrderSn)
	require.Equal(t, apierror.Conflict, apierror.ReasonOf(err))
	h.runWorkers(settings())
	h.becomes(1, late.OrderSn, order.Created)
	h.settles(sale.GoodsID, 0, 1)
}

// TestAdopter_WritesParkedOrders parks an order after its sale's epoch began. It is written once
// the gate is open, or fails if nothing is left.
func TestAdopter_WritesParkedOrders(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(1, 1)
	h.runWorkers(settings())
	late := []reservation.OrderLine{
		h.numbered(sale.GoodsID, 0, 1), h.numbered(sale.GoodsID, 0, 2),
	}
	h.park(sale.GoodsID, late...)
	h.settles(sale.GoodsID, 0, 1)
	statuses := make(map[order.Status]int)
	for _, l := range late {
		require.Eventually(t, func() bool {
			by := seckill.Actor{ID: l.BuyerID, Role: seckill.Buyer}
			o, err := h.Orders.Find(t.Context(), by, l.OrderSn)
			if err != nil || o.Status == order.Queued {
				return false
			}
			statuses[o.Status]++
			return true
		}, within, tick)
	}
	require.Equal(t, map[order.Status]int{order.Created: 1, order.Failed: 1}, statuses)
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
	revived := must.Get(h.DeadLetters.Requeue(t.Context(), seckill.Actor{}, deadLetters[0].ID))(t)
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
		OrderLine: reservation.OrderLine{OrderSn: late.OrderSn, BuyerID: late.BuyerID, Epoch: 2},
		GoodsID:   sale.GoodsID, Status: order.Failed, FailureReason: order.FailedLost,
	}
	must.Get(h.redis.Adopt(t.Context(), sale.GoodsID, 2, 2, []reservation.OrderLine{late}))(t)
	must.Get(h.store.WriteTombstone(t.Context(), tombstone))(t)
	require.Equal(t, order.Failed, h.find(1, late.OrderSn).Status)
	h.runWorkers(settings())
	h.publish(sale.GoodsID, h.lines(sale.GoodsID, late))
	h.settles(sale.GoodsID, 5, 0)
	h.becomes(8, h.buy(sale.GoodsID, 8, 2), order.Created)
}

// TestTombstone_HasTheDatabasesTime checks that Redis' clock, which is an hour ahead of the
// database's, does not date a lost order, and thereby its sale.
func TestTombstone_HasTheDatabasesTime(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(1, 1)
	lost := h.numbered(sale.GoodsID, 1, 1)
	h.mini.FlushAll()
	h.runWorkers(settings())
	h.settles(sale.GoodsID, 1, 0)
	orders := *h.Orders
	orders.Store = elsewhere{h.store, -time.Hour}
	o := must.Get(orders.Find(t.Context(), buyer(1), lost.OrderSn))(t)
	require.Equal(t, order.FailedLost, o.FailureReason)
	require.True(t, o.ClosedAt.Before(time.Now().Add(-30*time.Minute)), o.ClosedAt)
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

// TestRebuild_UnwritableOrderDoesNotBlockSale checks that a rebuild finishes although the database
// refuses one order, even as a failed one. The order becomes one dead letter.
func TestRebuild_UnwritableOrderDoesNotBlockSale(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(5, 2)
	h.queue.down.Store(true)
	good, bad := h.buy(sale.GoodsID, 1, 1), h.buy(sale.GoodsID, 2, 2)
	h.queue.down.Store(false)
	h.refuse(bad)
	rebuilt := make(chan rebuild.Result, 1)
	h.parts.Observers.Rebuilt = func(r rebuild.Result) { rebuilt <- r }
	must.Get(h.redis.Shut(t.Context(), sale.GoodsID, 1))(t)
	h.runWorkers(settings())
	h.becomes(1, good, order.Created)
	h.settles(sale.GoodsID, 4, 1)
	r := <-rebuilt
	require.Equal(t, rebuild.Result{
		GoodsID: sale.GoodsID, Why: r.Why, Was: 1, Epoch: 2, Available: 4, Relayed: r.Relayed,
		Found: r.Found, Lost: 1, Attempts: 3, Shut: r.Shut,
	}, r)
	deadLetters := h.deadLetters()
	require.Len(t, deadLetters, 1, "several attempts leave one dead letter")
	require.Equal(t, bad, deadLetters[0].OrderSn)
	m := must.Get(message.Decode(deadLetters[0].Body))(t)
	require.Equal(t, []reservation.OrderLine{
		{OrderSn: bad, BuyerID: "2", Quantity: 2, Epoch: 1, Name: "韩梅梅", Phone: "13800000000"},
	}, m.Orders)
}

// TestRebuild_UnwritableParkedOrderDoesNotBlockSale loses Redis while an order is parked that the
// database refuses, even as a failed one. The sale opens again, and the order is a dead letter.
func TestRebuild_UnwritableParkedOrderDoesNotBlockSale(t *testing.T) {
	h := newFixture(t)
	goods := h.exposeSale(5, 2).GoodsID
	good, bad := h.numbered(goods, 0, 1), h.numbered(goods, 0, 2)
	h.park(goods, good, bad)
	h.refuse(bad.OrderSn)
	h.mini.FlushAll()
	h.runWorkers(settings())
	h.becomes(1, good.OrderSn, order.Created)
	require.Eventually(t, func() bool {
		v, err := h.redis.View(t.Context(), goods)
		return err == nil && v.Gate == seckill.GateOpen
	}, within, tick)
	deadLetters := h.deadLetters()
	require.Len(t, deadLetters, 1)
	require.Equal(t, bad.OrderSn, deadLetters[0].OrderSn)
	require.Eventually(t, func() bool { // the adopter may have parked it again just before
		lines, err := h.store.LateOrders(t.Context(), goods, "", 10)
		return err == nil && len(lines) == 0
	}, within, tick)
}

// exec runs a statement on the test's own connection to the database.
func (h *fixture) exec(statement string, args ...any) {
	h.t.Helper()
	db := must.Get(sql.Open(h.driver, h.file))(h.t) // the store registers both drivers
	defer db.Close()
	must.Get(db.ExecContext(h.t.Context(), statement, args...))(h.t)
}

// refuse makes SQLite refuse the row of an order.
func (h *fixture) refuse(sn string) {
	h.t.Helper()
	h.exec(fmt.Sprintf(`CREATE TRIGGER refuse BEFORE INSERT ON orders WHEN NEW.order_sn = '%s'
		BEGIN SELECT RAISE(ABORT, 'refused by the test'); END`, sn))
}

// park parks late orders.
func (h *fixture) park(goods int64, late ...reservation.OrderLine) {
	h.t.Helper()
	now := time.Now()
	out := must.Get(h.store.WriteBatch(h.t.Context(), orderwriter.Batch{
		GoodsID: goods, Park: true, Lines: late,
		Times: order.Times{Now: now, PayBy: now.Add(time.Hour)},
	}))(h.t)
	require.Empty(h.t, out.Created)
	require.Empty(h.t, out.Failed)
}

func (h *fixture) retired(goods int64) bool {
	h.t.Helper()
	return must.Get(h.store.Sale(h.t.Context(), goods))(h.t).Retired
}

// TestRetirer_RemovesEndedSaleFromRedis checks that the retirer waits until every order of an ended
// sale is final, and then removes the sale from Redis. Its paths are judged as before. A late order
// makes the rebuilder load the sale again.
func TestRetirer_RemovesEndedSaleFromRedis(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(5, 2)
	stop := h.runWorkers(settings())
	used := h.request(sale.GoodsID, 7, 2)
	sn := h.place(used)
	h.becomes(7, sn, order.Created)
	h.settles(sale.GoodsID, 3, 2)
	stop()
	retirer := rebuild.Retirer{Store: h.store, Redis: h.redis, Log: h.parts.Log}
	require.NoError(t, retirer.RunOnce(t.Context()))
	require.False(t, h.retired(sale.GoodsID), "the sale has not ended")
	h.exec(`UPDATE sales SET end_at = ?`, time.Now().Add(-25*time.Hour).UnixMilli())
	ended := must.Get(h.store.Sale(t.Context(), sale.GoodsID))(t)
	require.NoError(t, h.redis.UpdateSale(t.Context(), ended))
	require.NoError(t, retirer.RunOnce(t.Context()))
	require.False(t, h.retired(sale.GoodsID), "an order may still be paid")
	must.Get(h.Payments.Pay(t.Context(), buyer(7), sn))(t)
	require.NoError(t, retirer.RunOnce(t.Context()))
	require.True(t, h.retired(sale.GoodsID))

	h.exec(`UPDATE sales SET retired_at = ?`, time.Now().Add(-10*time.Minute).UnixMilli())
	require.NoError(t, retirer.RunOnce(t.Context()))
	_, err := h.redis.View(t.Context(), sale.GoodsID)
	require.ErrorIs(t, err, seckill.ErrNotLoaded)
	require.Empty(t, h.mini.Keys(), "nothing is left of it")
	require.Equal(t, sn, must.Get(h.Purchases.Place(t.Context(), used))(t))
	for name, path := range map[string]string{
		"expired":  must.Get(h.keys.Parse(h.numbered(sale.GoodsID, 1, 7).OrderSn))(t).Path(),
		"invented": strings.Repeat("0", 32),
	} {
		_, err := h.Purchases.Place(t.Context(),
			purchase.Request{GoodsID: sale.GoodsID, Buyer: buyer(7), Path: path, Quantity: 1})
		require.Equal(t, apierror.BadPath, apierror.ReasonOf(err), "%s: %v", name, err)
	}

	h.runWorkers(settings())
	l := h.ledger(sale.GoodsID)
	require.True(t, l.Balanced, "MySQL alone supplies the ledger: %+v", l)
	require.Equal(t, []int64{5, 3, 2, 1}, []int64{l.Total, l.Available, l.Sold, l.Epoch})
	require.Equal(t, order.Paid, h.find(7, sn).Status)
	require.Equal(t, order.Failed, h.find(7, h.numbered(sale.GoodsID, 1, 7).OrderSn).Status)

	// A late order makes the rebuilder load the sale again, and the batch writer writes the order.
	late := h.numbered(sale.GoodsID, 1, 8)
	h.publish(sale.GoodsID, h.lines(sale.GoodsID, late))
	h.becomes(8, late.OrderSn, order.Created)
	require.False(t, h.retired(sale.GoodsID))
	h.settles(sale.GoodsID, 2, 3)
}
