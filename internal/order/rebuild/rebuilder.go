package rebuild

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/outbox"
	"flashsale.dev/seckill/internal/seckill"
)

// Result is the outcome of one rebuild.
type Result struct {
	GoodsID   int64         `json:"goodsId,string"`
	Why       string        `json:"why"`
	Was       int64         `json:"epochBefore"`
	Epoch     int64         `json:"epochAfter"`
	Available int64         `json:"available"`
	Relayed   int           `json:"relayed"`  // outbox entries that the queue had not confirmed
	Found     int           `json:"found"`    // pending reservations that are in MySQL now
	Lost      int           `json:"lost"`     // reservations that are dead letters now
	Attempts  int           `json:"attempts"` // drains of the sale
	Shut      time.Duration `json:"-"`        // duration for which the gate was shut
}

// ErrRebuilding means that another process rebuilds the sale.
var ErrRebuilding = errors.New("another process is rebuilding the sale")

// ErrRetired means that a sale is over for good. Redis need not hold it.
var ErrRetired = errors.New("the sale is retired, there is nothing to rebuild")

// lockTTL is the life of a killed rebuilder's lock. The gate is shut until another rebuilder gets
// it.
const lockTTL = 2 * time.Second

// Rebuilder rebuilds sales, one in each call. It is safe for concurrent use.
type Rebuilder struct {
	Opener
	Outbox  *outbox.Publisher
	Queue   order.Publisher // for barriers
	Rebuilt func(Result)    // receives each rebuild that opened a sale again; may be nil
	// PublishTimeout is the longest time from reserving to the end of publishing, of all nodes.
	PublishTimeout time.Duration
	Log            *slog.Logger
	slots          *slots // of the Worker
}

// Rebuild begins a new epoch of a sale: it shuts the gate, drains everything in flight into MySQL
// and loads MySQL's state. The backlog determines how long the gate is shut. The error is
// ErrRebuilding if another process holds the lock.
func (r *Rebuilder) Rebuild(
	ctx context.Context, goodsID int64, why string,
) (result Result, err error) {
	err = r.locked(ctx, goodsID, func() error {
		result, err = r.rebuild(ctx, goodsID, why)
		return err
	})
	return result, err
}

// rebuildIfNeeded rebuilds a sale if it still needs that once the lock is held: another process
// may have rebuilt it meanwhile.
func (r *Rebuilder) rebuildIfNeeded(ctx context.Context, sale seckill.Sale) {
	why := ""
	err := r.locked(ctx, sale.GoodsID, func() error {
		if why = r.reasonsToRebuild(ctx, []seckill.Sale{sale})[sale.GoodsID]; why == "" {
			return nil
		}
		_, err := r.rebuild(ctx, sale.GoodsID, why)
		return err
	})
	expected := errors.Is(err, ErrRebuilding) || errors.Is(err, ErrRetired)
	if err != nil && !expected && ctx.Err() == nil {
		r.Log.ErrorContext(ctx, "rebuild failed, retrying; the gate stays shut",
			"goods_id", sale.GoodsID, "why", why, "err", err)
	}
}

// reasonsToRebuild returns the reasons for rebuilds, by goods id. There is none for a sale that
// needs no rebuild or whose Redis does not answer. A closed sale needs one too, so that units of
// its unpaid orders can return.
func (r *Rebuilder) reasonsToRebuild(
	ctx context.Context, sales []seckill.Sale,
) map[int64]string {
	views, reasons := r.Redis.Views(ctx, seckill.GoodsIDs(sales)), make(map[int64]string)
	for _, sale := range sales {
		if v, answered := views[sale.GoodsID]; answered {
			if why := r.reasonToRebuild(ctx, sale, v); why != "" {
				reasons[sale.GoodsID] = why
			}
		}
	}
	return reasons
}

func (r *Rebuilder) reasonToRebuild(
	ctx context.Context, sale seckill.Sale, v seckill.View,
) string {
	switch {
	case v.Gate == seckill.GateMissing:
		return "Redis lost the sale"
	case v.Gate == seckill.GateLease:
		return "Redis restarted or failed over"
	case v.Gate == seckill.GateShut:
		return "an earlier rebuild did not finish"
	case v.Gate == seckill.GateExpired:
		return r.reasonOfExpiry(ctx, v)
	case v.Gate == seckill.GateOpen && v.OpenUntil.IsZero() && r.GateLifetime > 0:
		return "its gate was opened without an end"
	case v.Epoch < sale.Epoch:
		return "Redis holds an older epoch"
	}
	return ""
}

// foreignFor is how long a gate must have ended before a worker rebuilds the sale. It is for a sale
// that MySQL's record has open on another master, or that another worker rebuilds. The clients of a
// replaced master notice the failover within that time. If they rebuilt earlier, they would end the
// opening on the new master again and again.
const foreignFor = 15 * time.Second

// reasonOfExpiry returns the reason to rebuild a sale whose gate is not renewed; "" if a renewal
// will open it again, another worker may have the sale, or MySQL does not answer.
func (r *Rebuilder) reasonOfExpiry(ctx context.Context, v seckill.View) string {
	if r.GateLifetime == 0 {
		return "its gate has ended, and this Redis needs no renewals"
	}
	if over := v.Now.Sub(v.OpenUntil); over >= 0 && over < foreignFor {
		return ""
	}
	openOn, err := r.Store.OpenedOn(ctx, v.GoodsID)
	if err != nil || openOn == v.Lease {
		return ""
	}
	return "another Redis was opened, or a rebuild did not finish"
}

// locked runs work under the rebuild lock of a goods.
func (r *Rebuilder) locked(ctx context.Context, goodsID int64, work func() error) error {
	r.slots.take(goodsID)
	defer r.slots.free()
	unlock, ok, err := r.Redis.LockRebuild(ctx, goodsID, lockTTL)
	if err == nil && !ok {
		err = ErrRebuilding
	}
	if err != nil {
		return err
	}
	defer unlock()
	return work()
}

// rebuild drains a sale and opens its next epoch. The caller holds the lock.
func (r *Rebuilder) rebuild(ctx context.Context, goodsID int64, why string) (Result, error) {
	began, result := time.Now(), Result{GoodsID: goodsID, Why: why}
	log := r.Log.With("goods_id", goodsID)
	log.WarnContext(ctx, "rebuilding a sale, its gate is shut", "why", why)
	token, err := r.drainAll(ctx, &result)
	if err != nil {
		return result, err
	}
	sale, err := r.Open(ctx, goodsID, token)
	if err != nil {
		return result, err
	}
	result.Epoch, result.Available, result.Shut = sale.Epoch, sale.Stock, time.Since(began)
	log.InfoContext(ctx, "sale rebuilt, its gate is open", "epoch", sale.Epoch,
		"available", sale.Stock, "shut_seconds", result.Shut.Seconds(), "lost", result.Lost)
	if r.Rebuilt != nil {
		r.Rebuilt(result)
	}
	return result, nil
}

// drainAll drains a sale until every reservation is written or a dead letter. Each attempt has a
// fencing token of its own. drainAll returns the last one.
func (r *Rebuilder) drainAll(ctx context.Context, result *Result) (int64, error) {
	for result.Attempts = 1; ; result.Attempts++ {
		// Read Redis' epoch before the token is taken. A rebuild that takes a later token loads a
		// newer epoch than both servers have now. drain must not shut the gate of that epoch.
		v, err := r.Redis.View(ctx, result.GoodsID)
		if err != nil && !errors.Is(err, seckill.ErrNotLoaded) {
			return 0, fmt.Errorf("read the epoch in Redis: %w", err)
		}
		token, err := r.Store.NextRebuildToken(ctx, result.GoodsID)
		if err != nil {
			return 0, fmt.Errorf("take a rebuild token: %w", err)
		}
		missing, err := r.drain(ctx, result, token, v.Epoch)
		if err != nil || len(missing) == 0 {
			return token.Number, err
		}
		if result.Attempts == maxDrains {
			return token.Number, r.deadLetterMissing(ctx, result, token.Number, missing)
		}
		r.Log.WarnContext(ctx, "orders are missing after the barrier, draining again",
			"goods_id", result.GoodsID, "orders", len(missing), "order_sn", missing[0].OrderSn)
	}
}
