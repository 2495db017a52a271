package reconcile

import (
	"context"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

const (
	// tolerance is how long Redis and MySQL may differ in an order number. It is the usual time
	// from reserving to settling, with a margin.
	tolerance = 5 * time.Second
	// pendingChunk is the number of pending reservations that are looked up in MySQL at a time.
	pendingChunk = 500
)

// findings are the pending reservations older than the tolerance, by their row in MySQL. They lack
// those whose row is younger: after a wait in the queue they are about to be settled or released.
type findings struct {
	written []order.Pending // active, and still pending in Redis
	failed  []order.Pending // failed, and still pending in Redis
	absent  []order.Pending // parked, or no row: in flight, or lost with the queue
	overdue []order.Pending // those of absent that are old enough to be published again
}

// compareAll compares order numbers and, with nothing in flight, totals.
func (r LedgerReader) compareAll(
	ctx context.Context, v seckill.View, db seckill.Database,
) (seckill.Differences, error) {
	d, _, err := r.compare(ctx, v)
	if err != nil || v.Pending > 0 || d.Any() {
		return d, err
	}
	d.Totals, err = r.compareTotals(ctx, v, db)
	return d, err
}

// compare counts, by number, the orders and stock moves that differ for longer than the tolerance.
func (r LedgerReader) compare(
	ctx context.Context, v seckill.View,
) (d seckill.Differences, f findings, err error) {
	unreleased, oldest, err := r.Store.Unreleased(ctx, v.GoodsID)
	if err != nil {
		return d, f, err
	}
	now, err := r.Store.Now(ctx)
	if err != nil {
		return d, f, err
	}
	// A move that is dated ahead of every planned return counts as old: MySQL's clock was set back.
	age := now.Sub(oldest)
	if unreleased > 0 && (age > tolerance || -age > order.ReturnAfter+tolerance) {
		d.Unreleased = unreleased
	}
	if v.Pending > 0 {
		if f, err = r.comparePending(ctx, v, now); err != nil {
			return d, f, err
		}
	}
	if unreleased > 0 {
		f.failed = nil // a stock move already returns their units
	}
	d.Unsettled, d.Unwritten = len(f.written)+len(f.failed), len(f.overdue)
	return d, f, nil
}

// comparePending searches MySQL for every old pending reservation, page by page. A large backlog
// then needs little memory and no long query.
func (r LedgerReader) comparePending(
	ctx context.Context, v seckill.View, now time.Time,
) (f findings, err error) {
	for page, err := range r.Redis.PendingPages(ctx, v.GoodsID, pendingChunk) {
		if err == nil {
			err = r.comparePage(ctx, v, now, page, &f)
		}
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

// comparePage adds the findings of one page. now is MySQL's time. It skips young reservations,
// which are in flight. One that was reserved in the future counts as old: the clock was set back
// since.
func (r LedgerReader) comparePage(
	ctx context.Context, v seckill.View, now time.Time, page []order.Pending, f *findings,
) error {
	var old []order.Pending
	for _, p := range page {
		if v.Now.Sub(p.At).Abs() > tolerance {
			old = append(old, p)
		}
	}
	if len(old) == 0 {
		return nil
	}
	found, err := r.Store.OrdersByNumber(ctx, v.GoodsID, order.Numbers(old))
	if err != nil {
		return err
	}
	rows := make(map[string]order.Order, len(found))
	for _, o := range found {
		rows[o.OrderSn] = o
	}
	for _, p := range old {
		o, written := rows[p.OrderSn]
		switch {
		case !written, o.Status == order.Queued: // parked
			f.absent = append(f.absent, p)
			if age := v.Now.Sub(p.At); age < 0 || age > republishAfter {
				f.overdue = append(f.overdue, p)
			}
		case now.Sub(changedAt(o)).Abs() <= tolerance:
		case o.Status.Active():
			f.written = append(f.written, p)
		default:
			f.failed = append(f.failed, p)
		}
	}
	return nil
}

// changedAt returns when an order was written, or when it ended.
func changedAt(o order.Order) time.Time {
	if o.ClosedAt.IsZero() {
		return o.CreatedAt
	}
	return o.ClosedAt
}

// compareTotals returns 1 if the totals of Redis and MySQL differ with nothing in flight, else 0.
// before and db are read one after the other, and a stock move or a cut may have been applied to
// one server alone then. compareTotals therefore searches for such a row, and reads both totals
// again. If the row has ended in between, one of the servers has other totals now.
func (r LedgerReader) compareTotals(
	ctx context.Context, before seckill.View, db seckill.Database,
) (int, error) {
	if sameTotals(before, db) {
		return 0, nil
	}
	unreleased, _, err := r.Store.Unreleased(ctx, before.GoodsID)
	if err != nil || unreleased > 0 {
		return 0, err
	}
	after, err := r.Redis.View(ctx, before.GoodsID)
	if err != nil || after.Pending > 0 || redisTotals(after) != redisTotals(before) {
		return 0, err
	}
	dbAfter, err := r.Store.Database(ctx, before.GoodsID)
	if err != nil || dbAfter != db {
		return 0, err
	}
	return 1, nil
}

func sameTotals(v seckill.View, db seckill.Database) bool {
	return v.Available == db.Stock && v.Sold == db.Active
}

// totals are the figures of a view that do not change while the sale is idle.
type totals struct{ available, sold, epoch int64 }

func redisTotals(v seckill.View) totals {
	return totals{available: v.Available, sold: v.Sold, epoch: v.Epoch}
}
