package payment

import (
	"context"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// CancelForMerchant cancels a created order of a sale that the actor manages, and returns its units
// to the sale once. A repeated call returns the cancelled order.
func (s *Service) CancelForMerchant(
	ctx context.Context, by seckill.Actor, orderSn string,
) (order.Order, error) {
	return s.cancelForMerchant(ctx, by, orderSn, order.Created)
}

// Refund cancels a paid order of a sale that the actor manages, and returns its units to the sale
// once. The refunder returns the money and tries until the provider has it. A repeated call returns
// the cancelled order. A shipped order is a Conflict.
func (s *Service) Refund(
	ctx context.Context, by seckill.Actor, orderSn string,
) (order.Order, error) {
	return s.cancelForMerchant(ctx, by, orderSn, order.Paid)
}

// cancelForMerchant cancels an order of a status. Merchants change single orders, so it shares no
// transaction with buyers'.
func (s *Service) cancelForMerchant(
	ctx context.Context, by seckill.Actor, orderSn string, from order.Status,
) (order.Order, error) {
	o, err := s.orders.FindManagedChangeable(ctx, by, orderSn)
	if err != nil {
		return order.Order{}, err
	}
	var done Cancellation
	ctx = seckill.WithActor(ctx, by)
	err = order.Change(ctx, s.store, func(ctx context.Context, now time.Time) error {
		done, err = s.store.CancelForMerchant(ctx, o.GoodsID, orderSn, from, now)
		return err
	})
	return s.cancelled(ctx, done, err)
}
