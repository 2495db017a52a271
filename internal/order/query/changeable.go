package query

import (
	"context"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// FindChangeable returns the actor's own order if MySQL has its row, with the errors of Find. It
// returns Conflict while there is no row.
//
// It accepts a row that Redis still lists as pending. A change of that row is on disk only together
// with the row, so a crash of MySQL loses both or neither.
func (s *Service) FindChangeable(
	ctx context.Context, by seckill.Actor, orderSn string,
) (order.Order, error) {
	o, err := s.Find(ctx, by, orderSn)
	if err != nil || o.Status != order.Queued {
		return o, err
	}
	if row, err := s.Store.Order(ctx, o.GoodsID, orderSn); err == nil {
		return row, nil
	}
	e := seckill.NewError(seckill.Conflict, "the order is still on its way; ask again in a second")
	e.RetryAfter = time.Second
	return o, e
}

// FindChangeableByNumber is FindChangeable for a payment provider, whose reports have no buyer id.
func (s *Service) FindChangeableByNumber(ctx context.Context, orderSn string) (order.Order, error) {
	n, err := s.Minter.Parse(orderSn)
	if err != nil {
		return order.Order{}, NewNoSuchOrder()
	}
	buyer := int64(0) // no buyer has this id: Find returns why there is no order
	line, pending, err := s.Redis.Pending(ctx, n.GoodsID, orderSn)
	if err == nil && pending {
		buyer = line.BuyerID
	} else if o, err := s.Store.Order(ctx, n.GoodsID, orderSn); err == nil {
		buyer = o.BuyerID // read last, because an order that is no longer pending is in MySQL
	}
	return s.FindChangeable(ctx, seckill.Actor{ID: buyer, Role: seckill.Buyer}, orderSn)
}
