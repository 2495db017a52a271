package order_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/purchase"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/catalog"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
)

// lagging is a Redis whose replicas may lack the latest reservations.
type lagging struct {
	purchase.ReservationStore
	behind atomic.Bool
}

func (l *lagging) Reserve(
	ctx context.Context, goodsID, epoch int64, rs []reservation.Reservation,
) (reservation.Result, error) {
	g, err := l.ReservationStore.Reserve(ctx, goodsID, epoch, rs)
	if l.behind.Load() {
		g.NotReplicated = errors.New("too few replicas")
	}
	return g, err
}

// TestPlace_UnreplicatedReservationIsUnavailable checks that the purchase service answers 503 while
// too few replicas have a reservation. A later retry returns the same order. A refusal needs no
// replicas.
func TestPlace_UnreplicatedReservationIsUnavailable(t *testing.T) {
	h := newFixture(t)
	h.runWorkers(settings())
	goods := h.exposeSale(5, 1).GoodsID
	redis := &lagging{ReservationStore: h.redis}
	service := purchase.NewService(catalog.NewSaleReader(h.redis, h.store), redis, h.queue,
		h.minter, nil, nil, nil, time.Second, h.parts.Log)
	p := h.request(goods, 7, 1)

	redis.behind.Store(true)
	for range 2 { // the first call reserves, and the second finds the path used
		_, err := service.Place(t.Context(), p)
		require.Equal(t, seckill.Unavailable, seckill.ReasonOf(err))
	}
	h.settles(goods, 4, 1) // the order is written all the same
	other := p
	other.Buyer = buyer(8)
	_, err := service.Place(t.Context(), other)
	require.Equal(t, seckill.BadPath, seckill.ReasonOf(err))
	redis.behind.Store(false)
	sn := must.Get(service.Place(t.Context(), p))(t)
	h.becomes(7, sn, order.Created)
}
