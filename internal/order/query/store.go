package query

import (
	"context"
	"errors"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// Store reads orders from MySQL and writes tombstones.
type Store interface {
	order.Clock
	// WriteTombstone writes the row of a lost order, so that no writer can create the order
	// later. It returns an existing row unchanged.
	WriteTombstone(ctx context.Context, o order.Order) (order.Order, error)
	// OrdersOf lists a buyer's orders, newest first, before an order number ("": from the top).
	OrdersOf(ctx context.Context, buyerID string, before string, limit int) ([]order.Order, error)
	// OrdersOfGoods lists a sale's orders in the same way, of one status; "" means all.
	OrdersOfGoods(
		ctx context.Context, goodsID int64, status order.Status, before string, limit int,
	) ([]order.Order, error)
	// OrdersEndingWith returns numbers of written orders that end with eight characters, in
	// either case, of a merchant's sales; "" means all sales.
	OrdersEndingWith(ctx context.Context, merchantID, end string, limit int) ([]string, error)
	// StatusOf returns the status of each order that has a row, and Queued for a parked one.
	StatusOf(ctx context.Context, goodsID int64, sns []string) (map[string]order.Status, error)
	// OrdersByNumber reads the orders that have a row or are parked.
	OrdersByNumber(ctx context.Context, goodsID int64, sns []string) ([]order.Order, error)
}

// Redis holds the reservations that MySQL may not have yet.
type Redis interface {
	// PendingAmong returns the lines of those numbers, by goods id, that are pending. After an
	// error lines may be missing; it returns nil if Redis failed.
	PendingAmong(
		ctx context.Context, numbers map[int64][]string,
	) (map[string]reservation.OrderLine, error)
	// View reads the current state of a sale.
	View(ctx context.Context, goodsID int64) (seckill.View, error)
}

// lookupDeadline bounds a lookup, because a caller's context does not end it. It ends before a call
// of the API does: while MySQL is silent, an order that Redis has pending is still queued.
const lookupDeadline = 3 * time.Second

// record is what Redis and MySQL have of one order.
type record struct {
	line       reservation.OrderLine // of a pending order
	pending    bool
	pendingErr error // of Redis; it is unknown whether the order is pending
	row        order.Order
	err        error // of MySQL; ErrNoSuchOrder if there is no row
}

// lookUp reads orders of one goods for concurrent callers, first from Redis and then from MySQL.
// The reads begin after the last of the callers has called, so that none gets an older state than
// one that it knows.
func (s *Service) lookUp(ctx context.Context, goodsID int64, sns []string) ([]record, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupDeadline)
	defer cancel()
	// A Redis that does not answer leaves time for MySQL.
	asking, stop := context.WithTimeout(ctx, order.RedisDeadline)
	lines, pendingErr := s.Redis.PendingAmong(asking, map[int64][]string{goodsID: sns})
	stop()
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

// errParked means that a late order waits for units. It may fail.
var errParked = errors.New("the order is parked")

// Written reports whether an order has a row in MySQL. A parked order is an error, because its
// outcome is not known.
func (s *Service) Written(ctx context.Context, goodsID int64, orderSn string) (bool, error) {
	r, err := s.lookups.Do(ctx, goodsID, orderSn)
	switch {
	case err == nil && r.err == nil && r.row.Status == order.Queued:
		err = errParked
	case err == nil && !errors.Is(r.err, order.ErrNoSuchOrder):
		err = r.err
	}
	return err == nil && r.err == nil, err
}
