package query

import (
	"context"
	"time"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// FindManaged returns an order of a sale that the actor manages, with the statuses of Find. It
// returns NotFound for a number that nobody has, and Forbidden for an order of another merchant.
func (s *Service) FindManaged(
	ctx context.Context, by seckill.Actor, orderSn string,
) (order.Order, error) {
	n, r, err := s.find(ctx, orderSn)
	if err != nil {
		return order.Order{}, err
	}
	o, err := s.decide(ctx, buyerOf(r), n, orderSn, r)
	if err != nil {
		return order.Order{}, err
	}
	_, err = s.Sales.Get(ctx, by, n.GoodsID)
	return o, err
}

const (
	// mostOfEnd bounds the orders whose numbers have one end. Two are improbable.
	mostOfEnd = 10
	// endDeadline bounds a search that reads many numbers.
	endDeadline = 5 * time.Second
)

// FindManagedByEnd returns the written orders of sales that the actor manages whose numbers end
// with eight characters, in either case. Buyers see and say this end.
func (s *Service) FindManagedByEnd(
	ctx context.Context, by seckill.Actor, end string,
) ([]order.Order, error) {
	searching, cancel := context.WithTimeout(ctx, endDeadline)
	defer cancel()
	sns, err := s.Store.OrdersEndingWith(searching, by.ManagedMerchant(), end, mostOfEnd)
	if err != nil {
		return nil, apierror.NewUnavailable("the orders can't be searched", err)
	}
	var found []order.Order
	for _, sn := range sns {
		o, err := s.FindManaged(ctx, by, sn)
		if err != nil {
			return nil, err
		}
		found = append(found, o)
	}
	return found, nil
}

// FindManagedChangeable returns an order of a sale that the actor manages if MySQL has its row,
// with the errors of FindManaged. It returns Conflict while there is no row.
func (s *Service) FindManagedChangeable(
	ctx context.Context, by seckill.Actor, orderSn string,
) (order.Order, error) {
	if _, err := s.FindManaged(ctx, by, orderSn); err != nil {
		return order.Order{}, err
	}
	return s.findChangeable(ctx, orderSn, buyerOf)
}
