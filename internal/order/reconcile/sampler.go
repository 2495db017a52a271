package reconcile

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/workers"
)

// Sample is how the sales that are looked after stand at one moment.
type Sample struct {
	Sales       []SaleSample // the newest first
	DeadLetters int64        // that wait for an operator
	Memory      Memory       // of Redis
	Took        time.Duration
}

// Memory is what Redis uses of what it may.
type Memory struct {
	Used int64 // bytes
	Most int64 // bytes; 0: as much as the machine has
}

// SaleSample is one sale. What Redis did not tell is zero.
type SaleSample struct {
	GoodsID int64
	Gate    seckill.GateState
	OnSale  bool // exposed and not over: its gate should be open
	Ledger  seckill.Ledger

	Accounted  bool          // the ledger could be read
	Outbox     int64         // entries
	OutboxAge  time.Duration // of the oldest
	PendingAge time.Duration // since a moment before which nothing is pending
}

// Difference is how many units are in no place, or in two: |total − available − pending − sold|.
func (s SaleSample) Difference() int64 {
	d := s.Ledger.Total - s.Ledger.Available - s.Ledger.Pending - s.Ledger.Sold
	return max(d, -d)
}

// Oversold is how many units MySQL has sold beyond the total.
func (s SaleSample) Oversold() int64 { return max(0, s.Ledger.Database.Active-s.Ledger.Total) }

// SampleMetrics hears of every survey.
type SampleMetrics interface {
	Sampled(s Sample)
}

// SampleStore is MySQL as a survey needs it.
type SampleStore interface {
	CountDeadLetters(ctx context.Context) (int64, error)
}

// SampleRedis is Redis as a survey needs it.
type SampleRedis interface {
	View(ctx context.Context, goodsID int64) (seckill.View, error)
	Memory(ctx context.Context) (Memory, error)
}

// Sampler looks over all sales now and then, so that what stands still is seen as well as what moves. Every process with
// a crew surveys the same sales: of several answers the highest counts.
type Sampler struct {
	live       *livesales.List
	store      SampleStore
	redis      SampleRedis
	reconciler *Reconciler
	observer   SampleMetrics
	log        *slog.Logger
	dead       int64 // letters, when they were counted last
}

const (
	sampleInterval = 2 * time.Second
	// restFactor is how many times its own duration a survey rests at least: sums over many orders must not load MySQL.
	restFactor = 20
	// queryDeadline bounds each question to MySQL.
	queryDeadline = 2 * time.Second
)

// NewSampler makes a surveyor.
func NewSampler(live *livesales.List, store SampleStore, shelf SampleRedis, auditor *Reconciler, observer SampleMetrics, log *slog.Logger) *Sampler {
	return &Sampler{live: live, store: store, redis: shelf, reconciler: auditor, observer: observer, log: log}
}

// Run surveys until ctx ends.
func (s *Sampler) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		took := s.runOnce(ctx)
		workers.Sleep(ctx, max(sampleInterval, restFactor*took))
	}
	return nil
}

// runOnce tells the observer nothing where Redis can't be asked, about any sale: what was seen last grows old, which is seen too. Where
// MySQL can't, the backlog is told all the same, for that is when it grows; ledgers are not, and the dead letters are
// those that were counted last.
func (s *Sampler) runOnce(ctx context.Context) time.Duration {
	began := time.Now()
	found, err := s.sales(ctx)
	if err == nil {
		found.Memory, err = s.redis.Memory(ctx)
	}
	if found.accountable {
		s.countDead(ctx)
	}
	found.DeadLetters, found.Took = s.dead, time.Since(began)
	if err == nil {
		s.observer.Sampled(found.Sample)
	} else if ctx.Err() == nil {
		s.log.WarnContext(ctx, "can't look over the sales, trying again", "err", err)
	}
	return found.Took
}

// partialSample is one under way.
type partialSample struct {
	Sample
	accountable bool // MySQL has answered so far
}

func (s *Sampler) sales(ctx context.Context) (partialSample, error) {
	found := partialSample{accountable: true}
	sales := s.live.Sales()
	slices.SortFunc(sales, func(a, b seckill.Sale) int { return cmp.Compare(b.GoodsID, a.GoodsID) })
	var away error
	var seen bool
	var waited time.Duration
	for _, sale := range sales {
		began := time.Now()
		one, err := s.sample(ctx, sale)
		if seen = seen || err == nil; err != nil {
			away, waited = err, waited+time.Since(began)
		}
		if waited > queryDeadline {
			return found, err
		}
		if found.accountable && one.Gate == seckill.GateOpen {
			found.accountable = s.readLedger(ctx, sale, &one)
		}
		found.Sales = append(found.Sales, one)
	}
	if !seen {
		return found, away
	}
	return found, nil
}

// look reads one sale in Redis. That Redis has lost it is a finding and no error. Beside an error it is what is known where other
// sales can be looked at: of a cluster, this one's master is away, and it is not on sale.
func (s *Sampler) sample(ctx context.Context, sale seckill.Sale) (SaleSample, error) {
	found := SaleSample{GoodsID: sale.GoodsID, OnSale: sale.Status == seckill.Exposed && time.Now().Before(sale.EndAt)}
	v, err := s.redis.View(ctx, sale.GoodsID)
	if errors.Is(err, seckill.ErrNotLoaded) {
		found.Gate = seckill.GateMissing
		return found, nil
	}
	if err != nil {
		found.Gate = seckill.GateMissing
		return found, err
	}
	found.Gate, found.Outbox = v.Gate, v.Outbox
	found.Ledger = seckill.Ledger{Total: v.Total, Available: v.Available, Pending: v.Pending, Sold: v.Sold, Epoch: v.Epoch}
	if v.Outbox > 0 && !v.OldestAt.IsZero() {
		found.OutboxAge = max(0, v.Now.Sub(v.OldestAt))
	}
	if v.Pending > 0 {
		found.PendingAge = max(0, v.Now.Sub(v.PendingSince))
	}
	return found, nil
}

// account reads the ledger of a goods, and tells whether MySQL answers. A sale whose gate was shut a moment ago has none.
func (s *Sampler) readLedger(ctx context.Context, sale seckill.Sale, found *SaleSample) bool {
	ctx, cancel := context.WithTimeout(ctx, queryDeadline)
	defer cancel()
	ledger, err := s.reconciler.Ledger(ctx, sale)
	if err == nil {
		found.Ledger, found.Accounted = ledger, true
	}
	return ctx.Err() == nil && !errors.Is(err, order.ErrTryAgain)
}

func (s *Sampler) countDead(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, queryDeadline)
	defer cancel()
	if n, err := s.store.CountDeadLetters(ctx); err == nil {
		s.dead = n
	}
}
