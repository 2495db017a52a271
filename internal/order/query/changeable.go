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
	if r, err := s.lookups.Do(ctx, o.GoodsID, orderSn); err == nil && r.err == nil {
		return r.row, nil
	}
	e := seckill.NewError(seckill.Conflict, "the order is still on its way; ask again in a second")
	e.RetryAfter = time.Second
	return o, e
}

// FindChangeableByNumber is FindChangeable for a payment provider, whose reports have no buyer id.
func (s *Service) FindChangeableByNumber(ctx context.Context, orderSn string) (order.Order, error) {
	n, err := s.Keys.Parse(orderSn)
	if err != nil {
		return order.Order{}, NewNoSuchOrder()
	}
	r, _ := s.lookups.Do(ctx, n.GoodsID, orderSn)
	buyer := r.row.BuyerID // 0 if nothing is found: Find returns why
	if r.pending {
		buyer = r.line.BuyerID
	}
	return s.FindChangeable(ctx, seckill.Actor{ID: buyer, Role: seckill.Buyer}, orderSn)
}
