package order

import (
	"context"

	"flashsale.dev/seckill/internal/seckill"
)

// findings are the pending numbers older than the tolerance, by what MySQL says of them.
type findings struct {
	written map[string]Status // in MySQL, and still pending in Redis
	absent  []Pending         // not in MySQL: on their way, or lost with the queue
}

func (f findings) unsettled() int { return len(f.written) }

// compare walks over what is pending for longer than the tolerance.
func (a *Auditor) compare(ctx context.Context, v seckill.View) (findings, error) {
	f := findings{written: make(map[string]Status)}
	for cursor := uint64(0); ; {
		page, next, err := a.shelf.PendingPage(ctx, v.GoodsID, cursor, auditChunk)
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

func (a *Auditor) comparePage(ctx context.Context, v seckill.View, page []Pending, f *findings) error {
	var old []Pending
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
		if status, written := rows[p.OrderSn]; written {
			f.written[p.OrderSn] = status
		} else {
			f.absent = append(f.absent, p)
		}
	}
	return nil
}
