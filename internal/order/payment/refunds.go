package payment

import (
	"context"

	"flashsale.dev/seckill/internal/order/query"
	"flashsale.dev/seckill/internal/seckill"
)

// Refunds lists payments that are not refunded yet, with ids after an id.
func (s *Service) Refunds(ctx context.Context, after string, limit int) ([]Refund, error) {
	found, err := s.store.OpenRefunds(ctx, after, limit)
	return found, query.ChangeError(err)
}

// FindRefund returns a refund that is not made yet or is settled, or ErrNoSuchRefund.
func (s *Service) FindRefund(ctx context.Context, paymentID string) (Refund, error) {
	found, err := s.store.OpenRefund(ctx, paymentID)
	return found, query.ChangeError(err)
}

// RetryRefund makes a refund due at once, with a new period, for an operator.
func (s *Service) RetryRefund(
	ctx context.Context, by seckill.Actor, paymentID string,
) (Refund, error) {
	now, err := s.store.Now(ctx)
	var r Refund
	if err == nil {
		r, err = s.store.RetryRefund(seckill.WithActor(ctx, by), paymentID, now)
	}
	return r, query.ChangeError(err)
}

// SettleRefund records for an operator that the buyer has the money in another way. The refunder
// does not try again. Asked again, it returns the same refund.
func (s *Service) SettleRefund(
	ctx context.Context, by seckill.Actor, paymentID, note string,
) (Refund, error) {
	now, err := s.store.Now(ctx)
	var r Refund
	if err == nil {
		r, err = s.store.SettleRefund(seckill.WithActor(ctx, by), paymentID, note, now)
	}
	return r, query.ChangeError(err)
}

// Reversals lists the refunds and disputes of an order that the provider has reported.
func (s *Service) Reversals(
	ctx context.Context, goodsID int64, orderSn string,
) ([]Reversal, error) {
	found, err := s.store.ReversalsOf(ctx, goodsID, orderSn)
	return found, query.ChangeError(err)
}
