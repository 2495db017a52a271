package query

import (
	"context"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// FindManaged returns an order of a sale that the actor manages, with the statuses of Find. It
// returns NotFound for a number that nobody has, and Forbidden for an order of another merchant.
func (s *Service) FindManaged(
	ctx context.Context, by seckill.Actor, orderSn string,
) (order.Order, error) {
	n, err := s.Keys.Parse(orderSn)
	if err != nil {
		return order.Order{}, NewNoSuchOrder()
	}
	r, err := s.lookups.Do(ctx, n.GoodsID, orderSn)
	if err != nil {
		return order.Order{}, seckill.NewUnavailable("the order can't be looked up", err)
	}
	o, err := s.decide(ctx, buyerOf(r), n, orderSn, r)
	if err != nil {
		return order.Order{}, err
	}
	_, err = s.Sales.Get(ctx, by, n.GoodsID)
	return o, err
}

// FindManagedChangeable returns an order of a sale that the actor manages if MySQL has its row, with
// the errors of FindManaged. It returns Conflict while there is no row.
func (s *Service) FindManagedChangeable(
	ctx context.Context, by seckill.Actor, orderSn string,
) (order.Order, error) {
	if _, err := s.FindManaged(ctx, by, orderSn); err != nil {
		return order.Order{}, err
	}
	return s.findChangeable(ctx, orderSn, buyerOf)
}
