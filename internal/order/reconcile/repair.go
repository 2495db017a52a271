package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// maxLogged bounds the log lines of one kind for one sale and round. The metrics count all
// differences.
const maxLogged = 50

// repair repairs each kind of difference, even if another kind failed. It returns the number of
// repaired orders.
func (r *Reconciler) repair(ctx context.Context, v seckill.View, f findings) (int, error) {
	settled, settleErr := r.Redis.Settle(ctx, v.GoodsID, order.Numbers(f.written))
	republished, publishErr := r.republish(ctx, v, f.absent)
	returned, returnErr := r.returnUnits(ctx, v.GoodsID, f.failed)
	return settled + republished + returned, errors.Join(settleErr, publishErr, returnErr)
}

// republish publishes absent reservations that are due. Younger ones are still in flight.
func (r *Reconciler) republish(
	ctx context.Context, v seckill.View, absent []order.Pending,
) (int, error) {
	due := slices.DeleteFunc(slices.Clone(absent),
		func(p order.Pending) bool { return !dueForRepublishing(v.Now.Sub(p.At)) })
	return r.Publisher.Publish(ctx, v.GoodsID, due)
}

// dueForRepublishing reports whether a reservation of this age is published again in this round. It
// is if its age has just passed one minute, two, four, and so on. An age below zero is unknown: the
// clock was set back since. Such a reservation is published each minute, until its time has come.
func dueForRepublishing(age time.Duration) bool {
	const round = reconcileInterval + reconcileInterval/2
	if age < 0 {
		return -age%republishAfter <= round
	}
	for at := republishAfter; at <= age; at *= 2 {
		if age-at <= round {
			return true
		}
	}
	return false
}

// returnUnits returns the units that Redis holds for failed orders without a stock move. An
// adoption took these units after the failure was written.
func (r *Reconciler) returnUnits(
	ctx context.Context, goodsID int64, failed []order.Pending,
) (int, error) {
	for n, p := range failed {
		now, err := r.Store.Now(ctx)
		if err != nil {
			return n, err
		}
		if err := r.Store.ReturnUnits(ctx, goodsID, p.OrderLine, now); err != nil {
			return n, err
		}
	}
	return len(failed), nil
}

// logDifferences writes a line for each difference.
func (r *Reconciler) logDifferences(
	ctx context.Context, v seckill.View, d seckill.Differences, f findings,
) {
	log := r.Log.With("goods_id", v.GoodsID)
	logOrders(ctx, log, "unsettled", v.Now, f.written)
	logOrders(ctx, log, "failed_and_held", v.Now, f.failed)
	logOrders(ctx, log, "unwritten", v.Now, f.overdue)
	if d.Unreleased > 0 {
		log.WarnContext(ctx, "Redis lacks units of stock moves",
			"difference", "not_released", "moves", d.Unreleased)
	}
	if d.Totals > 0 {
		log.ErrorContext(ctx,
			"totals differ with nothing in flight: rebuild the sale (seckillctl rebuild)",
			"difference", "totals", "available", v.Available, "sold", v.Sold)
	}
}

// logOrders logs at most maxLogged orders of one difference and counts the rest.
func logOrders(
	ctx context.Context, log *slog.Logger, difference string, now time.Time, list []order.Pending,
) {
	for i, p := range list {
		if i == maxLogged {
			log.WarnContext(ctx, "more orders with the same difference",
				"difference", difference, "orders", len(list)-i)
			return
		}
		log.WarnContext(ctx, "Redis and MySQL differ in an order", "difference", difference,
			"order_sn", p.OrderSn, "age_seconds", now.Sub(p.At).Seconds())
	}
}
