package query

import (
	"context"
	"errors"
	"time"

	"flashsale.dev/seckill/internal/apierror"
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
	return s.findChangeable(ctx, orderSn, func(record) seckill.Actor { return by })
}

// FindChangeableByNumber is FindChangeable for a payment provider, whose reports have no buyer id.
func (s *Service) FindChangeableByNumber(ctx context.Context, orderSn string) (order.Order, error) {
	return s.findChangeable(ctx, orderSn, buyerOf)
}

// buyerOf returns the buyer of an order that was looked up. The id is empty if nothing is found.
func buyerOf(r record) seckill.Actor {
	buyer := r.row.BuyerID
	if r.pending {
		buyer = r.line.BuyerID
	}
	return seckill.Actor{ID: buyer, Role: seckill.Buyer}
}

func (s *Service) findChangeable(
	ctx context.Context, orderSn string, actor func(record) seckill.Actor,
) (order.Order, error) {
	n, r, err := s.find(ctx, orderSn)
	if err != nil {
		return order.Order{}, err
	}
	o, err := s.decide(ctx, actor(r), n, orderSn, r)
	switch {
	case err != nil || o.Status != order.Queued:
		return o, err
	case r.err == nil && r.row.Status != order.Queued:
		return r.row, nil
	}
	e := apierror.New(apierror.Conflict, "the order is still on its way; ask again in a second")
	e.RetryAfter = time.Second
	return o, e
}

// ChangeError maps an error of a store that changes orders to one that the client may see.
func ChangeError(err error) error {
	if errors.Is(err, order.ErrNoSuchOrder) {
		return NewNoSuchOrder()
	}
	return apierror.OrUnavailable(err, "the order could not be changed; the outcome is unknown")
}
