package order

import (
	"context"
	"log/slog"

	"flashsale.dev/seckill/internal/seckill"
)

// toldAtMost bounds the lines of one kind that a round writes for one sale: the first ones tell the cause, and the
// counters have them all.
const toldAtMost = 50

// tell writes a line for each difference.
func (a *Auditor) tell(ctx context.Context, v seckill.View, d seckill.Differences, f findings) {
	log := a.log.With("goods_id", v.GoodsID)
	each := func(what string, list []Pending) {
		for i, p := range list {
			if i == toldAtMost {
				log.WarnContext(ctx, "and more of the same", "difference", what, "orders", len(list)-i)
				return
			}
			log.WarnContext(ctx, "an order is in one place and not in the other", "difference", what,
				"order_sn", p.OrderSn, "age_seconds", v.Now.Sub(p.At).Seconds())
		}
	}
	each("written, not settled", f.written)
	each("failed, its units still held", f.failed)
	each("promised, not written", f.overdue(v.Now))
	if d.NotGiven > 0 {
		log.WarnContext(ctx, "units are not given back to redis", "difference", "not given", "moves", d.NotGiven)
	}
	if d.Totals > 0 {
		log.LogAttrs(ctx, slog.LevelError, "totals differ with nothing under way: have the sale rebuilt (seckillctl rebuild)",
			slog.String("difference", "totals"), slog.Int64("available", v.Available), slog.Int64("sold", v.Sold))
	}
}
