package rebuild

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// Opener begins epochs in MySQL and loads them into Redis. It does not drain reservations under
// way; the Rebuilder does that first.
type Opener struct {
	Store          Store
	Redis          Redis
	PaymentTimeout time.Duration // how long a parked order that is written may stay unpaid
	// GateLifetime is for how long a gate is open without a renewal, where Redis can fail over. It
	// is 0 where Redis cannot, and a load opens the gate for good.
	GateLifetime time.Duration
}

// Expose begins the first epoch of a draft, as Open does with FirstToken. A draft that is exposed
// in MySQL and not yet loaded into Redis looks like a sale that Redis has lost. So Expose holds the
// lock of rebuilds. Without the lock, such as while Redis is down, a rebuild may do the rest.
func (o Opener) Expose(ctx context.Context, goodsID int64) (seckill.Sale, error) {
	if unlock, ok, err := o.Redis.LockRebuild(ctx, goodsID, lockTTL); err == nil && ok {
		defer unlock()
	}
	return o.Open(ctx, goodsID, FirstToken)
}

// Open begins an epoch under a fencing token, or with FirstToken the first epoch of a draft, which
// has nothing to drain. The error is ErrFenced if a newer rebuild began, or if a sale with
// FirstToken is no draft. A draft has no orders, and is exposed in MySQL even if Redis is down: the
// Rebuilder loads it later.
func (o Opener) Open(ctx context.Context, goodsID, token int64) (seckill.Sale, error) {
	at, err := order.ReadTimes(ctx, o.Store, o.PaymentTimeout)
	if err != nil {
		return seckill.Sale{}, fmt.Errorf("read the database's clock: %w", err)
	}
	redisNow := at.Now
	if token != FirstToken {
		v, err := o.Redis.View(ctx, goodsID)
		if err != nil && !errors.Is(err, seckill.ErrNotLoaded) {
			return seckill.Sale{}, fmt.Errorf("read Redis' clock: %w", err)
		}
		redisNow = v.Now
	}
	sale, err := o.Store.BeginEpoch(ctx, goodsID, token, at)
	if err != nil {
		return seckill.Sale{}, fmt.Errorf("begin an epoch: %w", err)
	}
	pages := o.Store.HoldingPages(ctx, goodsID, sale.Epoch, redisNow)
	loaded, err := o.Redis.Load(ctx, goodsID, pages, func() (seckill.Sale, error) {
		return o.unlessChanged(ctx, sale)
	})
	if err == nil && !loaded {
		err = ErrFenced
	}
	if err != nil {
		return seckill.Sale{}, fmt.Errorf("load epoch %d: %w", sale.Epoch, err)
	}
	if o.GateLifetime > 0 {
		if err := o.open(ctx, sale, token); err != nil {
			return seckill.Sale{}, fmt.Errorf("open epoch %d: %w", sale.Epoch, err)
		}
	}
	return sale, nil
}

// unlessChanged returns MySQL's row of a sale with the units of an epoch, or ErrFenced if another
// epoch has begun, or a merchant has closed the sale or changed its terms, since that epoch began.
// Redis asks for it after it has staged the last batch. A Redis that was emptied before the first
// batch lacks the change, and this check finds it. If Redis was emptied later, it lacks the batch,
// and refuses the load.
//
// The row has a newer version than the epoch if orders have ended since. A merchant who repeats a
// change brings that version into Redis, which refuses an older load. A sale that takes long to
// load would stay shut for as long as the merchant repeats the change.
func (o Opener) unlessChanged(ctx context.Context, began seckill.Sale) (seckill.Sale, error) {
	now, err := o.Store.Sale(ctx, began.GoodsID)
	if err == nil && (now.Epoch != began.Epoch || !now.SameTerms(began)) {
		err = ErrFenced
	}
	now.Total, now.Stock = began.Total, began.Stock // what has changed since comes as stock moves
	return now, err
}
