package query

import (
	"context"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// lookupDeadline bounds a lookup, because none of its callers may cancel it.
const lookupDeadline = 5 * time.Second

// record is what Redis and MySQL have of one order.
type record struct {
	line       reservation.OrderLine // of a pending order
	pending    bool
	pendingErr error // of Redis; it is unknown whether the order is pending
	row        order.Order
	err        error // of MySQL; ErrNoSuchOrder if there is no row
}

// lookUp reads orders of one goods for concurrent callers, from Redis first and from MySQL after
// that. Both reads begin after the call of each caller. The caller therefore gets the effect of
// every change that it knows of.
func (s *Service) lookUp(ctx context.Context, goodsID int64, sns []string) ([]record, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupDeadline)
	defer cancel()
	lines, pendingErr := s.Redis.PendingAmong(ctx, map[int64][]string{goodsID: sns})
	rows, err := s.Store.OrdersByNumber(ctx, goodsID, sns)
	found := make(map[string]order.Order, len(rows))
	for _, o := range rows {
		found[o.OrderSn] = o
	}
	records := make([]record, len(sns))
	for i, sn := range sns {
		r := record{pendingErr: pendingErr, err: err}
		r.line, r.pending = lines[sn]
		row, written := found[sn]
		if r.row = row; !written && err == nil {
			r.err = order.ErrNoSuchOrder
		}
		records[i] = r
	}
	return records, nil
}
