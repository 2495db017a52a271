package order_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/sqlstore"
	"flashsale.dev/seckill/internal/testing/must"
)

// slowReader is a store whose first read of a sale after a change returns only after resume.
type slowReader struct {
	*sqlstore.Store
	changed      atomic.Bool
	read, resume chan struct{}
}

func (s *slowReader) Change(
	ctx context.Context, goodsID int64, c salechange.Change, key salechange.IdempotencyKey,
	now time.Time,
) (inventory.BegunChange, error) {
	b, err := s.Store.Change(ctx, goodsID, c, key, now)
	s.changed.Store(true)
	return b, err
}

func (s *slowReader) Sale(ctx context.Context, goodsID int64) (seckill.Sale, error) {
	sale, err := s.Store.Sale(ctx, goodsID)
	if s.changed.CompareAndSwap(true, false) {
		close(s.read)
		<-s.resume
	}
	return sale, err
}

// TestChange_OlderThanCloseDoesNotReopen suspends a change between its read of the row and its
// write to Redis. The sale is closed meanwhile, and stays closed in Redis.
func TestChange_OlderThanCloseDoesNotReopen(t *testing.T) {
	h := newFixture(t)
	goods := h.exposeSale(10, 2).GoodsID
	slow := &slowReader{Store: h.store, read: make(chan struct{}), resume: make(chan struct{})}
	service := *h.Sales
	service.Store = slow
	changed := make(chan error, 1)
	go func() {
		_, err := service.Change(t.Context(), operator, goods,
			salechange.Change{PerBuyerLimit: new(int64(1))}, salechange.IdempotencyKey{})
		changed <- err
	}()
	<-slow.read
	must.Get(h.Sales.Close(t.Context(), operator, goods))(t)
	close(slow.resume)
	require.NoError(t, <-changed)
	v := h.view(goods)
	require.Equal(t, seckill.Closed, v.Status)
	require.EqualValues(t, 1, v.PerBuyerLimit, "closing brings the whole row")
}

// TestChange_RulesAreAnsweredOnceBuyersHaveThem checks that a new end, limit or rate is answered
// 503 while Redis lacks it. An API that talks to another master than the one that may have the sale
// open answers 503, too. The same key brings it to buyers.
func TestChange_RulesAreAnsweredOnceBuyersHaveThem(t *testing.T) {
	end := time.Now().Add(-time.Minute).UTC().Truncate(time.Millisecond)
	for name, c := range map[string]salechange.Change{
		"end": {EndAt: &end}, "limit": {PerBuyerLimit: new(int64(1))},
		"rate": {Rate: salechange.RateChange{PermitsPerSecond: new(0.5)}},
	} {
		t.Run(name, func(t *testing.T) { requireAnsweredOnceBuyersHave(t, c) })
	}
}

func requireAnsweredOnceBuyersHave(t *testing.T, c salechange.Change) {
	key := salechange.IdempotencyKey{ActorID: operator.ID, Key: "k"}
	changed := func(h *fixture, sales *inventory.SaleService, goods int64) {
		h.t.Helper()
		must.Get(sales.Change(h.t.Context(), operator, goods, c, key))(h.t)
		sale := must.Get(h.store.Sale(h.t.Context(), goods))(h.t)
		require.True(h.t, sale.SameTerms(h.view(goods).Sale))
	}
	refused := func(h *fixture, goods int64) {
		h.t.Helper()
		for range 2 {
			_, err := h.Sales.Change(h.t.Context(), operator, goods, c, key)
			require.Equal(h.t, apierror.Unavailable, apierror.ReasonOf(err))
		}
	}
	t.Run("Redis is away", func(t *testing.T) {
		h := newFixture(t)
		goods := h.exposeSale(10, 2).GoodsID
		h.mini.SetError("LOADING Redis is loading the dataset in memory")
		refused(h, goods)
		h.mini.SetError("")
		changed(h, h.Sales, goods)
	})
	t.Run("another master", func(t *testing.T) {
		h := newFixture(t)
		h.failsOver("one", time.Minute)
		goods := h.exposeSale(10, 2).GoodsID
		replaced, before := h.Sales, h.redis
		_, h.parts.Redis = newMini(t)
		h.failsOver("two", time.Minute)
		refused(h, goods)
		h.redis = before
		changed(h, replaced, goods)
	})
}

// interrupted is a Redis that runs a step before each load.
type interrupted struct {
	rebuild.Redis
	before func()
}

func (r interrupted) Load(
	ctx context.Context, goodsID int64, pages iter.Seq2[[]order.Held, error],
	current func() (seckill.Sale, error),
) (bool, error) {
	r.before()
	return r.Redis.Load(ctx, goodsID, pages, current)
}

// beginEpoch opens the next epoch of a sale. before runs after the epoch has read the sale, and
// before Redis loads it.
func (h *fixture) beginEpoch(goods int64, before func()) error {
	token := must.Get(h.store.NextRebuildToken(h.t.Context(), goods))(h.t).Number
	_, err := rebuild.Opener{
		Store: h.store, Redis: interrupted{h.redis, before},
	}.Open(h.t.Context(), goods, token)
	return err
}

// TestClose_DuringALoadStaysClosed closes a sale after an epoch has read it as exposed, and before
// Redis loads that epoch. The load is refused, also where Redis has lost the sale. The next epoch
// loads the closed sale.
func TestClose_DuringALoadStaysClosed(t *testing.T) {
	for name, lose := range map[string]func(*fixture){
		"behind a shut gate": func(*fixture) {},
		"of a lost sale":     func(h *fixture) { h.mini.FlushAll() },
	} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t)
			goods := h.exposeSale(10, 2).GoodsID
			lose(h)
			must.Get(h.redis.Shut(t.Context(), goods, 1))(t)
			require.ErrorIs(t, h.beginEpoch(goods, func() {
				must.Get(h.Sales.Close(t.Context(), operator, goods))(t)
			}), rebuild.ErrFenced)
			require.NoError(t, h.beginEpoch(goods, func() {}))
			v := h.view(goods)
			require.Equal(t, seckill.GateOpen, v.Gate)
			require.Equal(t, seckill.Closed, v.Status)
		})
	}
}

// TestClose_RepeatedDuringALoadKeepsNoSaleShut repeats a close while Redis loads the epoch that has
// it. Where Redis can fail over, the merchant is asked to do so until the sale is open. MySQL's row
// is newer than the epoch, because a buyer has cancelled since.
func TestClose_RepeatedDuringALoadKeepsNoSaleShut(t *testing.T) {
	h := newFixture(t)
	goods := h.exposeSale(10, 2).GoodsID
	stop := h.runWorkers(settings())
	sn := h.buy(goods, 7, 2)
	h.becomes(7, sn, order.Created)
	h.settles(goods, 8, 2)
	stop()
	must.Get(h.redis.Shut(t.Context(), goods, 1))(t)
	must.Get(h.Sales.Close(t.Context(), operator, goods))(t)
	require.NoError(t, h.beginEpoch(goods, func() {
		must.Get(h.Payments.Cancel(t.Context(), buyer(7), sn))(t)
		must.Get(h.Sales.Close(t.Context(), operator, goods))(t)
	}))
	require.Equal(t, seckill.Closed, h.view(goods).Status)
	h.runWorkers(settings())
	h.settles(goods, 10, 0)
	require.EqualValues(t, 2, h.epochOf(goods))
}

// TestClose_BeforeRedisIsEmptiedStaysClosed closes a sale, or ends it, after an epoch has read it
// as exposed. Redis is emptied before it stages the orders of that epoch, and so loses the version
// that refuses older loads. That epoch is not loaded.
func TestClose_BeforeRedisIsEmptiedStaysClosed(t *testing.T) {
	for name, end := range map[string]func(*fixture, int64){
		"close": func(h *fixture, goods int64) {
			must.Get(h.Sales.Close(t.Context(), operator, goods))(t)
		},
		"an earlier end": func(h *fixture, goods int64) {
			end := time.Now().Add(-time.Minute)
			must.Get(h.Sales.Change(t.Context(), operator, goods,
				salechange.Change{EndAt: &end}, salechange.IdempotencyKey{}))(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t)
			h.onMariaDB()
			h.onRedis()
			goods := h.exposeSale(10, 2).GoodsID
			must.Get(h.redis.Shut(t.Context(), goods, 1))(t)
			err := h.beginEpoch(goods, func() {
				end(h, goods)
				require.NoError(t, h.parts.Redis.FlushAll(t.Context()).Err())
			})
			v, missing := h.redis.View(t.Context(), goods)
			require.ErrorIs(t, missing, seckill.ErrNotLoaded, "gate %s, status %s until %s, now %s",
				v.Gate, v.Status, v.EndAt, v.Now)
			require.ErrorIs(t, err, rebuild.ErrFenced)
			require.NoError(t, h.beginEpoch(goods, func() {}))
			v = h.view(goods)
			require.Equal(t, seckill.GateOpen, v.Gate)
			require.True(t, v.SameTerms(must.Get(h.store.Sale(t.Context(), goods))(t)))
		})
	}
}

// TestChange_OfTheStockKeepsNoSaleShut raises and cuts the stock after an epoch has read the sale
// and before Redis loads it. The load is not refused, and Redis and MySQL agree afterwards.
func TestChange_OfTheStockKeepsNoSaleShut(t *testing.T) {
	h := newFixture(t)
	goods := h.exposeSale(10, 2).GoodsID
	must.Get(h.redis.Shut(t.Context(), goods, 1))(t)
	change := func(units int64) error {
		_, err := h.Sales.Change(t.Context(), operator, goods,
			salechange.Change{StockDelta: units}, salechange.IdempotencyKey{})
		return err
	}
	require.NoError(t, h.beginEpoch(goods, func() {
		require.NoError(t, change(5))
		require.Equal(t, apierror.Unavailable, apierror.ReasonOf(change(-1)), "finished later")
	}))
	h.runWorkers(settings())
	h.settles(goods, 14, 0)
	require.EqualValues(t, 2, h.epochOf(goods))
}
