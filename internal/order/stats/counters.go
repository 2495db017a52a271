package stats

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/workers"
)

// Counts are the new counts of one sale on one node.
type Counts struct {
	Refusals map[seckill.Reason]int64 // by reason
	Orders   int64                    // reservations taken
}

// Rates are the counts of all nodes for a sale.
type Rates struct {
	Refusals        map[seckill.Reason]int64
	OrdersPerSecond float64 // over the last ten whole seconds
}

// CounterStore adds up the counts of all nodes in Redis.
type CounterStore interface {
	// AddCounts adds counts and returns which of the sales exist. It ignores the others.
	AddCounts(ctx context.Context, counts map[int64]Counts) (known map[int64]bool, err error)
	// Rates reads the counts of one sale.
	Rates(ctx context.Context, goodsID int64) (Rates, error)
}

// Counters counts refusals and orders in a node's memory and flushes them to Redis once a second.
// Counting therefore costs neither a call nor a lock. A crash of the node or of Redis may lose the
// counts of one second. A flush is not repeated, so no count is added twice. It is safe for
// concurrent use.
type Counters struct {
	store CounterStore
	log   *slog.Logger
	goods sync.Map // goods id -> *saleCounters
	size  atomic.Int64
}

// saleCounters are the counters of one sale. The map has all reasons from the start, so readers
// need no lock.
type saleCounters struct {
	refusals map[seckill.Reason]*atomic.Int64
	orders   atomic.Int64
}

const (
	flushInterval = time.Second
	// maxSales bounds the memory that requests for invented goods ids can take between two
	// flushes.
	maxSales      = 4096
	flushDeadline = 500 * time.Millisecond
)

// CountedReasons are the reasons that are counted.
func CountedReasons() []seckill.Reason {
	return []seckill.Reason{
		seckill.NotStarted, seckill.Ended, seckill.SoldOut, seckill.LimitReached, seckill.BadPath,
		seckill.Conflict, seckill.RateLimited, seckill.Unavailable,
	}
}

// NewCounters returns counters that flush to store.
func NewCounters(store CounterStore, log *slog.Logger) *Counters {
	return &Counters{store: store, log: log}
}

// Refused counts a refusal if its reason is one of CountedReasons.
func (cs *Counters) Refused(goodsID int64, reason seckill.Reason) {
	if c := cs.of(goodsID); c != nil && c.refusals[reason] != nil {
		c.refusals[reason].Add(1)
	}
}

// Took counts reservations taken.
func (cs *Counters) Took(goodsID, orders int64) {
	if c := cs.of(goodsID); c != nil {
		c.orders.Add(orders)
	}
}

// of returns the counters of a sale, or nil if there are maxSales already.
func (cs *Counters) of(goodsID int64) *saleCounters {
	if c, ok := cs.goods.Load(goodsID); ok {
		return c.(*saleCounters)
	}
	if cs.size.Load() >= maxSales {
		return nil
	}
	c := &saleCounters{refusals: make(map[seckill.Reason]*atomic.Int64)}
	for _, r := range CountedReasons() {
		c.refusals[r] = new(atomic.Int64)
	}
	found, had := cs.goods.LoadOrStore(goodsID, c)
	if !had {
		cs.size.Add(1)
	}
	return found.(*saleCounters)
}

// Run flushes the counts until ctx ends, and once more after that.
func (cs *Counters) Run(ctx context.Context) error {
	err := workers.Every(ctx, flushInterval, cs.Flush)
	cs.Flush(context.WithoutCancel(ctx))
	return err
}

// Flush sends the counts since the last flush once. It drops counters of unknown sales and of sales
// without new counts.
func (cs *Counters) Flush(ctx context.Context) {
	counts := map[int64]Counts{}
	cs.goods.Range(func(id, c any) bool {
		if got := c.(*saleCounters).take(); got.Orders > 0 || len(got.Refusals) > 0 {
			counts[id.(int64)] = got
		} else {
			cs.forget(id.(int64))
		}
		return true
	})
	if len(counts) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, flushDeadline)
	defer cancel()
	known, err := cs.store.AddCounts(ctx, counts)
	if err != nil {
		cs.log.DebugContext(ctx, "counts of one second are lost", "err", err)
		return
	}
	for id := range counts {
		if !known[id] {
			cs.forget(id)
		}
	}
}

// forget drops the counters of a sale. A concurrent count may be lost.
func (cs *Counters) forget(goodsID int64) {
	if _, had := cs.goods.LoadAndDelete(goodsID); had {
		cs.size.Add(-1)
	}
}

// take returns the counts since the last call and sets them to 0.
func (c *saleCounters) take() Counts {
	got := Counts{Orders: c.orders.Swap(0), Refusals: make(map[seckill.Reason]int64)}
	for reason, n := range c.refusals {
		if n := n.Swap(0); n > 0 {
			got.Refusals[reason] = n
		}
	}
	return got
}
