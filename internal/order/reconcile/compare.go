package reconcile

import (
	"context"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// findings are the pending numbers older than the tolerance, by what MySQL says of them.
type findings struct {
	written []order.Pending // in MySQL, and still pending in Redis
	failed  []order.Pending // failed in MySQL, and still pending in Redis
	absent  []order.Pending // not in MySQL: on their way, or lost with the queue
}

// overdue are the absent ones that ought to have come by now.
func (f findings) overdue(now time.Time) []order.Pending {
	var list []order.Pending
	for _, p := range f.absent {
		if now.Sub(p.At) > republishAfter {
			list = append(list, p)
		}
	}
	return list
}

// compare walks over what is pending for longer than the tolerance.
func (a *Reconciler) compare(ctx context.Context, v seckill.View) (findings, error) {
	var f findings
	for cursor := uint64(0); ; {
		page, next, err := a.redis.PendingPage(ctx, v.GoodsID, cursor, PendingChunk)
		if err != nil {
			return f, err
		}
		if err := a.comparePage(ctx, v, page, &f); err != nil {
			return f, err
		}
		if next == 0 {
			return f, nil
		}
		cursor = next
	}
}

func (a *Reconciler) comparePage(ctx context.Context, v seckill.View, page []order.Pending, f *findings) error {
	var old []order.Pending
	var sns []string
	for _, p := range page {
		if v.Now.Sub(p.At) > tolerance {
			old, sns = append(old, p), append(sns, p.OrderSn)
		}
	}
	if len(sns) == 0 {
		return nil
	}
	rows, err := a.store.StatusOf(ctx, v.GoodsID, sns)
	if err != nil {
		return err
	}
	for _, p := range old {
		status, written := rows[p.OrderSn]
		switch {
		case !written:
			f.absent = append(f.absent, p)
		case status == order.Failed:
			f.failed = append(f.failed, p)
		default:
			f.written = append(f.written, p)
		}
	}
	return nil
}
