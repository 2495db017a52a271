package rebuild

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/workers"
)

// Retirer removes sales from Redis a day after their end, when every order is final and nothing is
// in flight. It marks them in MySQL first, so that no rebuilder takes a removed sale for a lost
// one. A late change of such a sale clears the mark, and the sale is rebuilt. Several processes
// may run a Retirer.
type Retirer struct {
	Store Store
	Redis Redis
	Log   *slog.Logger

	// doneBefore: every sale that was retired before this moment is removed. It is zero before the
	// first full round.
	doneBefore time.Time
	fullAt     time.Time // of the last full round: one that began at doneBefore
}

const (
	retireInterval = time.Minute
	// retireAfter is how long a path that an earlier release stored returns its order.
	retireAfter = 24 * time.Hour
	// removeAfter is how long Redis keeps a retired sale. By then no list of live sales holds it.
	removeAfter = 2 * livesales.FullInterval
	// removeWindow is how long after its retirement every round removes a sale again: its mark may
	// commit late. A full round, once in that time, tries the older sales for which a master was
	// down. They may be very many.
	removeWindow = time.Hour
	retireChunk  = 100
)

// Run works until ctx ends.
func (r *Retirer) Run(ctx context.Context) error {
	return workers.Every(ctx, retireInterval, func(ctx context.Context) {
		workers.Warn(ctx, r.Log, "cannot retire sales, retrying", r.RunOnce(ctx))
	})
}

// RunOnce retires the sales that are over for good by now and removes retired ones from Redis. A
// sale that fails holds up no other.
func (r *Retirer) RunOnce(ctx context.Context) error {
	now, err := r.Store.Now(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for above := int64(0); ; {
		sales, err := r.Store.OverBefore(ctx, now.Add(-retireAfter), above, retireChunk)
		if err != nil || len(sales) == 0 {
			return errors.Join(append(errs, err, r.remove(ctx, now))...)
		}
		for _, sale := range sales {
			errs = append(errs, r.retire(ctx, sale, now))
		}
		above = sales[len(sales)-1].GoodsID
	}
}

// retire marks a sale if nothing is in flight in Redis and every order is final in MySQL. It leaves
// a sale that Redis lost to a round after its rebuild, and one whose end Redis does not have: it
// may still sell there.
func (r *Retirer) retire(ctx context.Context, sale seckill.Sale, now time.Time) error {
	v, err := r.Redis.View(ctx, sale.GoodsID)
	idle := v.Gate == seckill.GateOpen && v.Pending == 0 && v.Outbox == 0
	if err != nil || !idle || v.Epoch != sale.Epoch || !v.SameTerms(sale) {
		return nil // a later round retires it
	}
	done, err := r.Store.Retire(ctx, sale, now.Add(-retireAfter), now)
	if done {
		r.Log.InfoContext(ctx, "sale retired, it is removed from Redis later", "goods_id",
			sale.GoodsID)
	}
	return err
}

// remove removes from Redis the sales that were retired in the last removeWindow. A full round
// takes the older ones too, from doneBefore on. It moves doneBefore if all removals succeed. The
// first round of a process takes all sales, because no Retirer may have run for a while. remove
// returns the first error.
func (r *Retirer) remove(ctx context.Context, now time.Time) (failed error) {
	from, full := now.Add(-removeWindow), now.Sub(r.fullAt).Abs() >= removeWindow
	if full {
		from, r.fullAt = r.doneBefore, now
	}
	for above := int64(0); ; {
		sales, err := r.Store.RetiredBetween(ctx, from, now.Add(-removeAfter), above, retireChunk)
		if err != nil {
			return err
		}
		if len(sales) == 0 {
			if failed == nil && full {
				r.doneBefore = now.Add(-removeWindow)
			}
			return failed
		}
		for _, sale := range sales {
			if _, err := r.Redis.Retire(ctx, sale); failed == nil {
				failed = err
			}
		}
		above = sales[len(sales)-1].GoodsID
	}
}
