package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/order/outbox"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/workers"
)

// Metrics receives what the reconciler finds.
type Metrics interface {
	// Reconciled is called after each round over a sale, and when its holdings lack orders.
	Reconciled(r Report)
	// Sampled is called after each complete sample.
	Sampled(s Sample)
}

// Report is the outcome of one round over a sale, or of a comparison of its holdings.
type Report struct {
	Found    seckill.Differences
	Holdings int // orders that their buyers' holdings lack
	Repaired int // of those: settled, republished, with a release scheduled, or loaded again
}

// Reconciler repairs differences between Redis and MySQL, and samples sales for metrics.
type Reconciler struct {
	LedgerReader
	Live      *livesales.List
	Publisher *outbox.Publisher
	Metrics   Metrics // may be nil: then nothing is sampled
	Log       *slog.Logger

	mu      sync.Mutex
	last    map[int64]lastRound // by goods id
	waiting Waiting             // at the last count; for the sampling goroutine
}

// lastRound is what the last round found of a sale.
type lastRound struct {
	totals
	equal bool // MySQL had the same totals
}

const (
	reconcileInterval = 5 * time.Second
	// republishAfter is the age at which a confirmed reservation is published again. Each further
	// time is at twice the age of the last. A slow consumer therefore does not receive its whole
	// backlog every round.
	republishAfter = time.Minute
)

// Run reconciles, compares holdings and samples until ctx ends. Each has its own goroutine, so that
// samples continue while reconciling waits for a server that is down.
func (r *Reconciler) Run(ctx context.Context) error {
	var g errgroup.Group
	g.Go(func() error { return workers.Every(ctx, reconcileInterval, r.reconcileAll) })
	g.Go(func() error { return r.compareHoldings(ctx) })
	if r.Metrics != nil {
		g.Go(func() error { return r.runSampling(ctx) })
	}
	return g.Wait()
}

// reconcileAll does one round over all live sales. It does not log a queue that is down, because
// the broker connection logs that.
func (r *Reconciler) reconcileAll(ctx context.Context) {
	sales, live := r.Live.Sales(), make(map[int64]bool)
	for _, sale := range sales {
		live[sale.GoodsID] = true
	}
	workers.Each(ctx, sales, func(ctx context.Context, sale seckill.Sale) {
		_, err := r.Reconcile(ctx, sale.GoodsID)
		if !errors.Is(err, order.ErrQueueDown) {
			workers.Warn(ctx, r.Log, "cannot reconcile a sale, retrying", err,
				"goods_id", sale.GoodsID)
		}
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.last, func(goodsID int64, _ lastRound) bool { return !live[goodsID] })
}

// Reconcile does one round over a sale: it finds, logs and repairs differences. It only reports
// differing totals, because a rebuild repairs those. A sale whose gate is not open has no
// differences. One goroutine may call it for a sale at a time.
func (r *Reconciler) Reconcile(ctx context.Context, goodsID int64) (Report, error) {
	var report Report
	v, err := r.Redis.View(ctx, goodsID)
	if errors.Is(err, seckill.ErrNotLoaded) || err == nil && v.Gate != seckill.GateOpen {
		return report, nil
	}
	if err != nil {
		return report, err
	}
	var f findings
	if report.Found, f, err = r.compare(ctx, v); err != nil {
		return report, err
	}
	if report.Found.Totals, err = r.compareTotalsOnce(ctx, v, report.Found); err != nil {
		return report, err
	}
	r.logDifferences(ctx, v, report.Found, f)
	report.Repaired, err = r.repair(ctx, v, f)
	if r.Metrics != nil {
		r.Metrics.Reconciled(report)
	}
	return report, err
}

// compareTotalsOnce compares the totals of a sale that two successive rounds found idle with the
// same figures. For a comparison MySQL sums all orders of the sale. So once the totals were equal
// it compares them again only after a figure has changed.
func (r *Reconciler) compareTotalsOnce(
	ctx context.Context, v seckill.View, d seckill.Differences,
) (int, error) {
	state := lastRound{totals: redisTotals(v)}
	before := r.setLast(v.GoodsID, state)
	if v.Pending > 0 || d.Any() || before.totals != state.totals {
		return 0, nil
	}
	if before.equal {
		r.setLast(v.GoodsID, before)
		return 0, nil
	}
	db, err := r.Store.Database(ctx, v.GoodsID)
	if err != nil {
		return 0, err
	}
	differ, err := r.compareTotals(ctx, v, db)
	state.equal = sameTotals(v, db) // totals that differ are compared in the next round too
	r.setLast(v.GoodsID, state)
	return differ, err
}

// setLast stores the state of a sale and returns the one before.
func (r *Reconciler) setLast(goodsID int64, state lastRound) (before lastRound) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = make(map[int64]lastRound)
	}
	before, r.last[goodsID] = r.last[goodsID], state
	return before
}
