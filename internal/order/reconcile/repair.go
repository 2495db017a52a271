package reconcile

import (
	"context"
	"errors"
	"maps"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/outbox"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/workers"
)

// Run audits and mends until ctx ends.
func (a *Reconciler) Run(ctx context.Context) error {
	return workers.Every(ctx, reconcileInterval, a.runOnce)
}

func (a *Reconciler) runOnce(ctx context.Context) {
	live := make(map[int64]bool)
	for _, sale := range a.live.Sales() {
		live[sale.GoodsID] = true
		if _, err := a.Reconcile(ctx, sale.GoodsID); err != nil && ctx.Err() == nil && !errors.Is(err, order.ErrQueueDown) {
			a.log.WarnContext(ctx, "audit goes on later", "goods_id", sale.GoodsID, "err", err)
		}
	}
	maps.DeleteFunc(a.quiet, func(goodsID int64, _ idleState) bool { return !live[goodsID] })
}

// Mend audits a sale and mends what can be without asking anybody: settles what is written and still pending, publishes
// RetryTransaction what is not written after a minute, gives back what is held for failed orders. Totals that differ are told only:
// a rebuild mends those.
func (a *Reconciler) Reconcile(ctx context.Context, goodsID int64) (Report, error) {
	seen := Report{GoodsID: goodsID}
	v, err := a.redis.View(ctx, goodsID)
	if errors.Is(err, seckill.ErrNotLoaded) || err == nil && v.Gate != seckill.GateOpen {
		return seen, nil
	}
	if err != nil {
		return seen, err
	}
	if v.Pending > 0 {
		seen.BacklogAge = max(0, v.Now.Sub(v.PendingSince))
	}
	var f findings
	if seen.Found, f, err = a.differs(ctx, v); err != nil {
		return seen, err
	}
	if seen.Found.Totals, err = a.totalsOnce(ctx, v, seen.Found); err != nil {
		return seen, err
	}
	a.logDifferences(ctx, v, seen.Found, f)
	seen.Repaired, err = a.repair(ctx, v, f)
	if a.observer != nil {
		a.observer.Audited(seen)
	}
	return seen, err
}

// totalsOnce compares totals the second time that a sale is seen with nothing under way and the same numbers, and not again
// while they stay so: summing MySQL's orders up has its price.
func (a *Reconciler) totalsOnce(ctx context.Context, v seckill.View, d seckill.Differences) (int, error) {
	now := idleState{available: v.Available, sold: v.Sold, epoch: v.Epoch}
	before, seen := a.quiet[v.GoodsID]
	same := seen && before.available == now.available && before.sold == now.sold && before.epoch == now.epoch
	if a.quiet[v.GoodsID] = now; v.Pending > 0 || d.Any() || !same {
		return 0, nil
	}
	if now.compared = true; before.compared {
		a.quiet[v.GoodsID] = now
		return 0, nil
	}
	db, err := a.store.Database(ctx, v.GoodsID)
	if err != nil {
		return 0, err
	}
	differ, err := a.totals(ctx, v, db)
	now.compared = err == nil && differ == 0 // what differs is told again in every round
	a.quiet[v.GoodsID] = now
	return differ, err
}

func (a *Reconciler) repair(ctx context.Context, v seckill.View, f findings) (int, error) {
	settled, settleErr := a.settle(ctx, v.GoodsID, f.written)
	fed, feedErr := a.republish(ctx, v, f.absent)
	returned, returnErr := a.planReturns(ctx, v.GoodsID, f.failed)
	return settled + fed + returned, errors.Join(settleErr, feedErr, returnErr)
}

func (a *Reconciler) settle(ctx context.Context, goodsID int64, written []order.Pending) (int, error) {
	if len(written) == 0 {
		return 0, nil
	}
	sns := make([]string, len(written))
	for i, p := range written {
		sns[i] = p.OrderSn
	}
	return a.redis.Settle(ctx, goodsID, sns)
}

// giveBack plans the return of units that Redis holds for orders that failed and have no move: an adoption took them after
// the failure was written.
func (a *Reconciler) planReturns(ctx context.Context, goodsID int64, failed []order.Pending) (int, error) {
	for n, p := range failed {
		if _, err := a.store.ScheduleRelease(ctx, goodsID, p.OrderLine, a.now()); err != nil {
			return n, err
		}
	}
	return len(failed), nil
}

func (a *Reconciler) republish(ctx context.Context, v seckill.View, absent []order.Pending) (int, error) {
	var entries [][]byte
	for _, p := range absent {
		if due(v.Now.Sub(p.At)) {
			entries = append(entries, p.Entry)
		}
	}
	fed := 0
	for a.relay != nil && len(entries) > 0 {
		n := min(outbox.RelayChunk, len(entries))
		if err := a.relay.PublishEntries(ctx, v.GoodsID, entries[:n]); err != nil {
			return fed, err
		}
		fed, entries = fed+n, entries[n:]
	}
	return fed, nil
}

// due tells whether a reservation of an age is to be published again in this round of the audit: when its age has just
// passed a minute, two, four, and so on.
func due(age time.Duration) bool {
	for at := republishAfter; at <= age; at *= 2 {
		if age-at <= reconcileInterval+reconcileInterval/2 {
			return true
		}
	}
	return false
}

// toldAtMost bounds the lines of one kind that a round writes for one sale: the first ones tell the cause, and the
// saleCounters have them all.
const toldAtMost = 50
