package order_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/purchase"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/sqlstore"
	"flashsale.dev/seckill/internal/testing/must"
)

// failsOver makes the fixture's Redis one that can fail over, with the given lease.
func (h *fixture) failsOver(lease string, lifetime time.Duration) {
	h.redis = redisstore.New(h.parts.Redis,
		redisstore.Options{Lease: lease, FailsOver: true})
	h.parts.RedisStore, h.parts.GateLifetime = h.redis, lifetime
	h.Services = app.NewServices(h.parts, settings())
}

// TestRenewer_KeepsGatesOpen checks that a sale goes on for as long as a worker renews its gate,
// and after a pause again, without a new epoch.
func TestRenewer_KeepsGatesOpen(t *testing.T) {
	h := newFixture(t)
	h.failsOver("one", 2*time.Second)
	sale := h.exposeSale(10, 5)
	gateBecomes := func(state seckill.GateState) {
		t.Helper()
		require.Eventually(t, func() bool {
			v, err := h.redis.View(t.Context(), sale.GoodsID)
			return err == nil && v.Gate == state
		}, within, tick)
	}
	gateBecomes(seckill.GateExpired)
	_, err := h.Purchases.Place(t.Context(), purchase.Request{
		GoodsID: sale.GoodsID, Buyer: buyer(7), Quantity: 1,
		Path: h.keys.Issue(sale.GoodsID, "7", time.Now()).Path(),
	})
	require.Equal(t, apierror.Unavailable, apierror.ReasonOf(err))
	stop := h.runWorkers(settings())
	gateBecomes(seckill.GateOpen)
	stop()
	gateBecomes(seckill.GateExpired)
	h.runWorkers(settings())
	gateBecomes(seckill.GateOpen)
	require.EqualValues(t, 1, h.view(sale.GoodsID).Epoch)
}

// hookedStore calls before ahead of each epoch.
type hookedStore struct {
	*sqlstore.Store
	before func()
}

func (s hookedStore) BeginEpoch(
	ctx context.Context, goodsID, token int64, at order.Times,
) (seckill.Sale, error) {
	s.before()
	return s.Store.BeginEpoch(ctx, goodsID, token, at)
}

// TestRebuild_WaitsForTheGateOfAnotherMaster checks that no epoch begins while a master that was
// replaced without its knowledge still sells. What it sold is written before that. A rebuild that
// fails after the wait spares the next one the wait.
func TestRebuild_WaitsForTheGateOfAnotherMaster(t *testing.T) {
	h := newFixture(t)
	const lifetime = 3 * time.Second
	h.failsOver("one", lifetime)
	sale := h.exposeSale(10, 5)
	replaced := h.redis
	renewer := rebuild.Renewer{
		Store: h.store, Redis: h.redis, GateLifetime: lifetime, Log: h.parts.Log,
	}
	require.Eventually(t, func() bool { return renewer.RunOnce(t.Context()) == nil }, within, tick)

	_, h.parts.Redis = newMini(t)
	h.failsOver("two", lifetime)
	h.runAllBut(isRebuilder)
	began := 0
	rebuilder := h.rebuilder(hookedStore{h.store, func() {
		began++
		_, err := replaced.Reserve(t.Context(), sale.GoodsID, 1, []reservation.Reservation{{
			OrderLine: h.numbered(sale.GoodsID, 1, 9), PathEnd: time.Now().Add(time.Minute),
		}})
		require.ErrorContains(t, err, seckill.GateExpired.String())
	}})
	rebuilder.Opener.GateLifetime = lifetime
	h.queue.down.Store(true)
	_, err := rebuilder.Rebuild(t.Context(), sale.GoodsID, "test")
	require.ErrorContains(t, err, "send the barrier")
	token := must.Get(h.store.NextRebuildToken(t.Context(), sale.GoodsID))(t).Number
	require.Empty(t, must.Get(h.store.EndOpening(t.Context(), sale.GoodsID, token))(t))

	h.queue.down.Store(false)
	_, err = rebuilder.Rebuild(t.Context(), sale.GoodsID, "test")
	require.NoError(t, err)
	require.Equal(t, 1, began)
	h.settles(sale.GoodsID, 10, 0)
}

// TestClose_AnsweredByTheMasterThatIsOpen checks that a close is answered 503 by an API that talks
// to another master than the one that may have the sale open: that one would go on selling.
func TestClose_AnsweredByTheMasterThatIsOpen(t *testing.T) {
	h := newFixture(t)
	h.failsOver("one", time.Minute)
	goods := h.exposeSale(10, 5).GoodsID
	replaced := h.Sales
	_, h.parts.Redis = newMini(t)
	h.failsOver("two", time.Minute)
	_, err := h.Sales.Close(t.Context(), operator, goods)
	require.Equal(t, apierror.Unavailable, apierror.ReasonOf(err))
	closed := must.Get(replaced.Close(t.Context(), operator, goods))(t)
	require.Equal(t, seckill.Closed, closed.Status)
}
