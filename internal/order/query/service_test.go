package query

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/ordersn"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// racingRebuild is a Redis and a MySQL. A rebuild writes the order and ends its epoch between their
// answers.
type racingRebuild struct {
	Store
	order   order.Order
	rebuilt bool
}

func (m *racingRebuild) Pending(
	context.Context, int64, string,
) (reservation.OrderLine, bool, error) {
	return reservation.OrderLine{}, false, nil
}

func (m *racingRebuild) PendingAmong(context.Context, map[int64][]string) (map[string]bool, error) {
	return nil, nil
}

func (m *racingRebuild) View(ctx context.Context, goodsID int64) (seckill.View, error) {
	return m.Sale(ctx, goodsID)
}

func (m *racingRebuild) Order(context.Context, int64, string) (order.Order, error) {
	if !m.rebuilt {
		return order.Order{}, order.ErrNoSuchOrder
	}
	return m.order, nil
}

func (m *racingRebuild) WriteTombstone(ctx context.Context, o order.Order) (order.Order, error) {
	return m.Order(ctx, o.GoodsID, o.OrderSn)
}

func (m *racingRebuild) Sale(context.Context, int64) (seckill.View, error) {
	m.rebuilt = true
	v := seckill.View{Gate: seckill.GateOpen}
	v.Epoch = 2
	return v, nil
}

// TestFind_OrderWrittenByRebuildIsNotFailed checks that the order query finds an order that a
// rebuild wrote between the reads of Redis and MySQL.
func TestFind_OrderWrittenByRebuildIsNotFailed(t *testing.T) {
	minter := ordersn.NewMinter([]byte("a secret of at least 32 bytes, for tests"))
	sn, err := minter.Mint(42, 1)
	require.NoError(t, err)
	m := &racingRebuild{
		order: order.Order{
			OrderLine: reservation.OrderLine{OrderSn: sn, BuyerID: 7},
			GoodsID:   42,
			Status:    order.Created,
		},
	}
	s := &Service{Store: m, Redis: m, Reader: m, Minter: minter}
	o, err := s.Find(t.Context(), seckill.Actor{ID: 7}, sn)
	require.NoError(t, err)
	require.Equal(t, order.Created, o.Status)
}
