package order_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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

// TestChange_OlderThanCloseDoesNotReopen suspends a change between its read of the row and its write
// to Redis. The sale is closed meanwhile, and stays closed in Redis.
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
	v := must.Get(h.redis.View(t.Context(), goods))(t)
	require.Equal(t, seckill.Closed, v.Status)
	require.EqualValues(t, 1, v.PerBuyerLimit, "closing brings the whole row")
}

// interrupted is a Redis that runs a step before each load.
type interrupted struct {
	rebuild.Redis
	before func()
}

func (r interrupted) Load(
	ctx context.Context, sale seckill.Sale, pages iter.Seq2[[]order.Held, error],
) (bool, error) {
	r.before()
	return r.Redis.Load(ctx, sale, pages)
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
			begin := func(before func()) error {
				token := must.Get(h.store.NextRebuildToken(t.Context(), goods))(t)
				_, err := rebuild.Opener{
					Store: h.store, Redis: interrupted{h.redis, before},
				}.Open(t.Context(), goods, token)
				return err
			}
			require.ErrorIs(t, begin(func() {
				must.Get(h.Sales.Close(t.Context(), operator, goods))(t)
			}), rebuild.ErrFenced)
			require.NoError(t, begin(func() {}))
			v := must.Get(h.redis.View(t.Context(), goods))(t)
			require.Equal(t, seckill.GateOpen, v.Gate)
			require.Equal(t, seckill.Closed, v.Status)
		})
	}
}
