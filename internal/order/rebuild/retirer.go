package rebuild

import (
	"context"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/workers"
)

// RetireStore is MySQL as the retiring of sales needs it.
type RetireStore interface {
	// OverBefore lists sales not retired that were over before a moment, by goods id, above one.
	OverBefore(ctx context.Context, moment time.Time, above int64, limit int) ([]seckill.Sale, error)
	// RetiredBetween lists sales retired at a moment or later, and before another.
	RetiredBetween(ctx context.Context, from, to time.Time) ([]seckill.Sale, error)
	// Retire keeps that a sale is over for good; false where it is not.
	Retire(ctx context.Context, goodsID, epoch int64, overBefore, now time.Time) (bool, error)
}

// RetireRedis is Redis as the retiring of sales needs it.
type RetireRedis interface {
	View(ctx context.Context, goodsID int64) (seckill.View, error)
	Retire(ctx context.Context, goodsID, epoch int64) (bool, error)
}

// Retirer lets Redis forget sales that are over for good: a day after their end, when every order is final and nothing is on
// its way. MySQL says so first, so that nobody takes what is missing then for lost; a sale of which anything changes
// later is looked after, and built again, as any other. Any number may be at work.
type Retirer struct {
	store RetireStore
	redis RetireRedis
	now   func() time.Time
	log   *slog.Logger
}

const (
	retireEvery = time.Minute
	// retireAfter is as long as a used path answers.
	retireAfter = 24 * time.Hour
	// forgetAfter is how long Redis remembers what MySQL has retired: by then nobody's list of live sales has it.
	forgetAfter = 2 * livesales.FullInterval
	// forgetAgain is how long Redis is told again, for who died in between.
	forgetAgain = time.Hour
	retireChunk = 100
)

// NewRetirer makes a retirer.
func NewRetirer(store RetireStore, shelf RetireRedis, log *slog.Logger) *Retirer {
	return &Retirer{store: store, redis: shelf, now: time.Now, log: log}
}

// Run retires until ctx ends.
func (r *Retirer) Run(ctx context.Context) error {
	return workers.Every(ctx, retireEvery, func(ctx context.Context) {
		if err := r.RunOnce(ctx); err != nil && ctx.Err() == nil {
			r.log.WarnContext(ctx, "sales that are over are retired later", "err", err)
		}
	})
}

// RunOnce retires what is over for good by now.
func (r *Retirer) RunOnce(ctx context.Context) error {
	before := r.now().Add(-retireAfter)
	for above := int64(0); ; {
		sales, err := r.store.OverBefore(ctx, before, above, retireChunk)
		if err != nil {
			return err
		}
		if len(sales) == 0 {
			return r.forget(ctx)
		}
		for _, sale := range sales {
			if err := r.retire(ctx, sale, before); err != nil {
				return err
			}
		}
		above = sales[len(sales)-1].GoodsID
	}
}

// retire asks Redis whether anything is under way, and MySQL whether all is final.
func (r *Retirer) retire(ctx context.Context, sale seckill.Sale, before time.Time) error {
	v, err := r.redis.View(ctx, sale.GoodsID)
	if err != nil || v.Gate != seckill.GateOpen || v.Epoch != sale.Epoch || v.Pending > 0 || v.Outbox > 0 {
		return nil // what Redis has lost is built again first; where it is away, later
	}
	done, err := r.store.Retire(ctx, sale.GoodsID, sale.Epoch, before, r.now())
	if done {
		r.log.InfoContext(ctx, "a sale is over for good, redis may forget it", "goods_id", sale.GoodsID)
	}
	return err
}

// forget takes what was retired out of Redis, this time's and what somebody left behind.
func (r *Retirer) forget(ctx context.Context) error {
	now := r.now()
	sales, err := r.store.RetiredBetween(ctx, now.Add(-forgetAgain), now.Add(-forgetAfter))
	if err != nil {
		return err
	}
	for _, sale := range sales {
		if _, err := r.redis.Retire(ctx, sale.GoodsID, sale.Epoch); err != nil {
			return err
		}
	}
	return nil
}
