package stats

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/workers"
)

// Counts are the new counts of one sale on one node.
type Counts struct {
	Refusals map[apierror.Reason]int64 // by reason
	Orders   int64                     // reservations taken
}

// Rates are the counts of all nodes for a sale.
type Rates struct {
	Refusals        map[apierror.Reason]int64
	Since           time.Time // from which Redis has counted; zero before the first count
	OrdersPerSecond float64   // over the last ten whole seconds
}

// CounterStore adds up the counts of all nodes in Redis.
type CounterStore interface {
	// AddCounts adds the counts of the sales that exist and ignores the others.
	AddCounts(ctx context.Context, counts map[int64]*Counts) error
	// Rates reads the counts of one sale.
	Rates(ctx context.Context, goodsID int64) (Rates, error)
}

// Counters counts refusals and orders in a node's memory and flushes them to Redis once a second.
// Counting therefore costs no call. A crash of the node or of Redis may lose the counts of one
// second. A flush is not repeated, so no count is added twice. It is safe for concurrent use.
type Counters struct {
	store   CounterStore
	log     *slog.Logger
	counted []apierror.Reason
	mu      sync.Mutex
	goods   map[int64]*Counts // since the last flush
}

const (
	flushInterval = time.Second
	// maxSales bounds the memory that requests for invented goods ids can take between two
	// flushes.
	maxSales      = 4096
	flushDeadline = 500 * time.Millisecond
)

// CountedReasons are the reasons that are counted.
func CountedReasons() []apierror.Reason {
	return []apierror.Reason{
		apierror.NotStarted, apierror.Ended, apierror.SoldOut, apierror.LimitReached,
		apierror.BadPath, apierror.Conflict, apierror.RateLimited, apierror.Unavailable,
	}
}

// NewCounters returns counters that flush to store.
func NewCounters(store CounterStore, log *slog.Logger) *Counters {
	return &Counters{
		store: store, log: log, counted: CountedReasons(), goods: make(map[int64]*Counts),
	}
}

// Refused counts a refusal if its reason is one of CountedReasons.
func (cs *Counters) Refused(goodsID int64, reason apierror.Reason) {
	if !slices.Contains(cs.counted, reason) {
		return
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c := cs.of(goodsID, maxSales); c != nil {
		c.Refusals[reason]++
	}
}

// Took counts reservations taken.
func (cs *Counters) Took(goodsID, orders int64) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.of(goodsID, math.MaxInt).Orders += orders // only sales that exist have orders
}

// of returns the counts of a sale, or nil if as many others as most have counts. The caller holds
// mu.
func (cs *Counters) of(goodsID int64, most int) *Counts {
	c := cs.goods[goodsID]
	if c == nil && len(cs.goods) < most {
		c = &Counts{Refusals: make(map[apierror.Reason]int64)}
		cs.goods[goodsID] = c
	}
	return c
}

// Run flushes the counts until ctx ends, and once more after that.
func (cs *Counters) Run(ctx context.Context) error {
	err := workers.Every(ctx, flushInterval, cs.flush)
	cs.flush(context.WithoutCancel(ctx))
	return err
}

// flush sends the counts since the last flush once.
func (cs *Counters) flush(ctx context.Context) {
	cs.mu.Lock()
	counts := cs.goods
	cs.goods = make(map[int64]*Counts)
	cs.mu.Unlock()
	if len(counts) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, flushDeadline)
	defer cancel()
	if err := cs.store.AddCounts(ctx, counts); err != nil {
		cs.log.DebugContext(ctx, "counts of one second are lost", "err", err)
	}
}
