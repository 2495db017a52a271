package order_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// lagging is a Redis whose replicas may not have what it took.
type lagging struct {
	order.Reserver
	behind atomic.Bool
}

func (l *lagging) Reserve(ctx context.Context, goodsID, epoch int64, rs []seckill.Reservation) (seckill.Group, error) {
	g, err := l.Reserver.Reserve(ctx, goodsID, epoch, rs)
	if l.behind.Load() {
		g.Unsure = errors.New("too few replicas")
	}
	return g, err
}

func TestNothingIsPromisedThatReplicasMayLack(t *testing.T) {
	h := open(t)
	h.work(settings())
	goods := h.putUp(5, 1).GoodsID
	shelf := &lagging{Reserver: h.shelf}
	desk := order.NewDesk(seckill.NewFront(h.shelf, h.store), shelf, h.queue, h.minter, nil, nil, nil, time.Second, h.parts.Log)
	p := order.Purchase{GoodsID: goods, Buyer: buyer(7), Path: h.path(goods, 7), Quantity: 1}

	shelf.behind.Store(true)
	for range 2 { // the first takes, the second finds the path used
		_, err := desk.Place(t.Context(), p)
		require.Equal(t, seckill.Unavailable, seckill.ReasonOf(err))
	}
	h.settles(goods, 4, 1) // it went its way: whoever asks again is promised what is there already
	shelf.behind.Store(false)
	sn, err := desk.Place(t.Context(), p)
	require.NoError(t, err)
	h.becomes(7, sn, order.Created)
}

func TestARefusalNeedsNoReplicas(t *testing.T) {
	h := open(t)
	goods := h.putUp(1, 1).GoodsID
	shelf := &lagging{Reserver: h.shelf}
	shelf.behind.Store(true)
	desk := order.NewDesk(seckill.NewFront(h.shelf, h.store), shelf, h.queue, h.minter, nil, nil, nil, time.Second, h.parts.Log)
	_, err := desk.Place(t.Context(), order.Purchase{GoodsID: goods, Buyer: buyer(8), Path: "0123456789abcdef0123456789abcdef", Quantity: 1})
	require.Equal(t, seckill.BadPath, seckill.ReasonOf(err))
}
