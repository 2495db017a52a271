package order_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/query"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestQuery_UnsettledCommitIsQueued checks that the order query reports an order as queued until
// Redis settles it. MySQL has both orders, and Redis has settled one. A crash of MySQL could still
// lose the other commit.
func TestQuery_UnsettledCommitIsQueued(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(5, 5)
	h.queue.down.Store(true)
	sns := []string{h.buy(sale.GoodsID, 7, 1), h.buy(sale.GoodsID, 7, 1)}
	h.commit(sale.GoodsID, h.pending(sale.GoodsID, sns...)...)
	must.Get(h.redis.Settle(t.Context(), sale.GoodsID, sns[1:]))(t)

	for range 2 {
		mine := must.Get(h.Orders.Mine(t.Context(), buyer(7), "", 10))(t)
		theirs := must.Get(h.Orders.OfGoods(t.Context(), operator, sale.GoodsID, "", "", 10))(t)
		for _, list := range [][]order.Order{mine, theirs} {
			require.Equal(t, []order.Status{order.Created, order.Queued},
				[]order.Status{list[0].Status, list[1].Status})
		}
	}
	h.requireNotifiedOnceSettled(sale.GoodsID, sns)
}

// requireNotifiedOnceSettled subscribes to two orders, of which the second is settled. The notifier
// reports that one at once, and the first one after it is settled.
func (h *fixture) requireNotifiedOnceSettled(goods int64, sns []string) {
	h.t.Helper()
	notifier := query.NewNotifier(h.store, h.redis, h.parts.Log)
	unsure := notifier.Subscribe(goods, sns[0], order.Queued)
	sure := notifier.Subscribe(goods, sns[1], order.Queued)
	ctx, cancel := context.WithTimeout(h.t.Context(), within)
	done := make(chan error, 1)
	go func() { done <- notifier.Run(ctx) }()
	defer func() {
		cancel()
		require.NoError(h.t, <-done)
	}()
	require.Equal(h.t, order.Created, (<-sure.Changed).Status)
	require.Empty(h.t, unsure.Changed, "the order is not settled yet")
	must.Get(h.redis.Settle(h.t.Context(), goods, sns))(h.t)
	require.Equal(h.t, order.Created, (<-unsure.Changed).Status)
}

// TestQuery_ShutGateKeepsCreatedOrder checks that a created order does not become queued again.
// Redis loses its last second, so the settled order is pending again behind a shut gate.
func TestQuery_ShutGateKeepsCreatedOrder(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(5, 5)
	h.queue.down.Store(true)
	sn := h.buy(sale.GoodsID, 7, 1)
	h.commit(sale.GoodsID, h.pending(sale.GoodsID, sn)...)
	require.Equal(t, order.Queued, h.find(7, sn).Status)

	must.Get(h.redis.Shut(t.Context(), sale.GoodsID, 1))(t)
	require.Equal(t, order.Created, h.find(7, sn).Status)
	mine := must.Get(h.Orders.Mine(t.Context(), buyer(7), "", 10))(t)
	require.Equal(t, order.Created, mine[0].Status)
}

// TestPayment_UnsettledOrderCanBePaidAndCancelled checks that buyers can pay and cancel orders that
// MySQL has and Redis has not settled. A Redis that does not answer causes this state. Settling the
// orders later must not change them.
func TestPayment_UnsettledOrderCanBePaidAndCancelled(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(5, 5)
	h.queue.down.Store(true)
	sns := []string{h.buy(sale.GoodsID, 7, 1), h.buy(sale.GoodsID, 8, 2)}
	h.commit(sale.GoodsID, h.pending(sale.GoodsID, sns...)...)
	require.Equal(t, order.Queued, h.find(7, sns[0]).Status)

	must.Get(h.Payments.Pay(t.Context(), buyer(7), sns[0]))(t)
	must.Get(h.Payments.Cancel(t.Context(), buyer(8), sns[1]))(t)
	must.Get(h.redis.Settle(t.Context(), sale.GoodsID, sns))(t)
	h.settles(sale.GoodsID, 4, 1)
	require.Equal(t, order.Paid, h.find(7, sns[0]).Status)
	require.Equal(t, order.Cancelled, h.find(8, sns[1]).Status)
}

// rebuiltReader reads a sale that is rebuilt before the answer.
type rebuiltReader struct {
	order.SaleReader
	rebuild func() seckill.View
}

func (r rebuiltReader) ExposedSale(context.Context, int64) (seckill.View, error) {
	return r.rebuild(), nil
}

// TestFind_OrderWrittenByRebuildIsNotFailed checks that the order query finds an order that a
// rebuild wrote between the reads of Redis and MySQL.
func TestFind_OrderWrittenByRebuildIsNotFailed(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(5, 1)
	l := h.numbered(sale.GoodsID, 1, 7)
	orders := query.NewService(query.Deps{
		Store: h.store, Redis: h.redis, Keys: h.keys,
		Reader: rebuiltReader{rebuild: func() seckill.View {
			h.commit(sale.GoodsID, l)
			return seckill.View{
				Sale: seckill.Sale{Epoch: 2}, Gate: seckill.GateOpen, Now: time.Now(),
			}
		}},
	})
	o := must.Get(orders.Find(t.Context(), buyer(7), l.OrderSn))(t)
	require.Equal(t, order.Created, o.Status)
	l = h.numbered(sale.GoodsID, 1, 8)
	o = must.Get(orders.FindChangeableByNumber(t.Context(), l.OrderSn))(t)
	require.Equal(t, order.Created, o.Status, "a provider's report names no buyer")
}

// TestFindManaged_PromisedOrderIsNotMissingDuringARebuild checks that merchants and payment
// providers, who do not say whose order it is, are answered 503 while only the queue has an order.
// A number that nobody has is missing once the gate is open.
func TestFindManaged_PromisedOrderIsNotMissingDuringARebuild(t *testing.T) {
	h := newFixture(t)
	h.onMariaDB()
	h.onRedis()
	goods := h.exposeSale(5, 1).GoodsID
	l, invented := h.numbered(goods, 1, 7), h.numbered(goods, 1, 8).OrderSn
	require.NoError(t, h.parts.Redis.FlushAll(t.Context()).Err())
	merchant := seckill.Actor{ID: "1", Role: seckill.Merchant}
	finds := map[string]func(string) (order.Order, error){
		"managed": func(sn string) (order.Order, error) {
			return h.Orders.FindManaged(t.Context(), merchant, sn)
		},
		"changeable": func(sn string) (order.Order, error) {
			return h.Orders.FindManagedChangeable(t.Context(), merchant, sn)
		},
		"by number": func(sn string) (order.Order, error) {
			return h.Orders.FindChangeableByNumber(t.Context(), sn)
		},
	}
	for name, find := range finds {
		_, err := find(l.OrderSn)
		require.Equal(t, apierror.Unavailable, apierror.ReasonOf(err), "%s: %v", name, err)
	}
	h.runWorkers(settings())
	h.publish(goods, h.lines(goods, l))
	h.settles(goods, 4, 1) // the gate is open
	for name, find := range finds {
		require.Equal(t, order.Created, must.Get(find(l.OrderSn))(t).Status, name)
		_, err := find(invented)
		require.Equal(t, apierror.NotFound, apierror.ReasonOf(err), "%s: %v", name, err)
	}
}

// TestFind_OrderIsLostOnlyBeyondAStepOfTheClock checks that an order is lost only if Redis' clock
// cannot go back so far that its path takes units again. The buyer would be promised a lost order.
func TestFind_OrderIsLostOnlyBeyondAStepOfTheClock(t *testing.T) {
	h := newFixture(t)
	sale := h.exposeSale(5, 1)
	l := h.numbered(sale.GoodsID, 1, 7)
	expires := must.Get(h.keys.Parse(l.OrderSn))(t).ExpiresAt()
	for _, c := range []struct {
		after time.Duration
		want  order.Status
	}{{1500 * time.Millisecond, order.Queued}, {time.Minute, order.Failed}} {
		orders := query.NewService(query.Deps{
			Store: h.store, Redis: h.redis, Keys: h.keys,
			Reader: rebuiltReader{rebuild: func() seckill.View {
				return seckill.View{
					Sale: seckill.Sale{Epoch: 1}, Gate: seckill.GateOpen, Now: expires.Add(c.after),
				}
			}},
		})
		require.Equal(t, c.want, must.Get(orders.Find(t.Context(), buyer(7), l.OrderSn))(t).Status)
	}
}
