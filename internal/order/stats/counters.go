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

// Counts is what was counted of one sale.
type Counts struct {
	Refusals map[seckill.Reason]int64 // to buyers, by the reason that they were told
	Orders   int64                    // reservations taken
}

// Rates is what all nodes have counted of a sale since Redis knows it.
type Rates struct {
	Refusals        map[seckill.Reason]int64
	OrdersPerSecond float64 // over the last ten whole seconds
}

// CounterStore shares what the nodes counted.
type CounterStore interface {
	// AddCounts adds to what is known of sales and tells which of them there are: of the others nothing is kept.
	AddCounts(ctx context.Context, counts map[int64]Counts) (known map[int64]bool, err error)
	// Rates reads one sale's.
	Rates(ctx context.Context, goodsID int64) (Rates, error)
}

// Counters counts refusals and orders in a node's memory, and shares them once a second: to count costs no call, and no lock.
// A second's counts may be lost with the node or with Redis; none is counted twice.
type Counters struct {
	store CounterStore
	log   *slog.Logger
	goods sync.Map // goods id -> *counters
	size  atomic.Int64
}

// saleCounters are one sale's; the map itself never changes.
type saleCounters struct {
	refusals map[seckill.Reason]*atomic.Int64
	orders   atomic.Int64
}

const (
	flushInterval = time.Second
	// maxSales bounds what callers can make a node remember between two flushes by naming goods that there are not.
	maxSales      = 4096
	flushDeadline = 500 * time.Millisecond
)

// CountedReasons are the reasons that are counted.
func CountedReasons() []seckill.Reason {
	return []seckill.Reason{
		seckill.NotStarted, seckill.Ended, seckill.SoldOut, seckill.LimitReached, seckill.BadPath, seckill.Conflict,
		seckill.RateLimited, seckill.Unavailable,
	}
}

// NewCounters makes a tally of nothing.
func NewCounters(store CounterStore, log *slog.Logger) *Counters {
	return &Counters{store: store, log: log}
}

// Refused counts a refusal, where its reason is one that is counted.
func (t *Counters) Refused(goodsID int64, reason seckill.Reason) {
	if c := t.of(goodsID); c != nil && c.refusals[reason] != nil {
		c.refusals[reason].Add(1)
	}
}

// Took counts orders.
func (t *Counters) Took(goodsID, orders int64) {
	if c := t.of(goodsID); c != nil {
		c.orders.Add(orders)
	}
}

// of finds a goods' counters; nil where there are too many already.
func (t *Counters) of(goodsID int64) *saleCounters {
	if c, ok := t.goods.Load(goodsID); ok {
		return c.(*saleCounters)
	}
	if t.size.Load() >= maxSales {
		return nil
	}
	c := &saleCounters{refusals: make(map[seckill.Reason]*atomic.Int64)}
	for _, r := range CountedReasons() {
		c.refusals[r] = new(atomic.Int64)
	}
	found, had := t.goods.LoadOrStore(goodsID, c)
	if !had {
		t.size.Add(1)
	}
	return found.(*saleCounters)
}

// Run shares the counts until ctx ends, and then what is left.
func (t *Counters) Run(ctx context.Context) error {
	err := workers.Every(ctx, flushInterval, t.Flush)
	t.Flush(context.WithoutCancel(ctx))
	return err
}

// Share hands over what was counted since the last time, once. What is no sale is forgotten, and so is what counted nothing.
func (t *Counters) Flush(ctx context.Context) {
	counts := map[int64]Counts{}
	t.goods.Range(func(id, c any) bool {
		if got := c.(*saleCounters).take(); got.Orders > 0 || len(got.Refusals) > 0 {
			counts[id.(int64)] = got
		} else {
			t.forget(id.(int64))
		}
		return true
	})
	if len(counts) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, flushDeadline)
	defer cancel()
	known, err := t.store.AddCounts(ctx, counts)
	if err != nil {
		t.log.DebugContext(ctx, "a second's figures are lost", "err", err)
		return
	}
	for id := range counts {
		if !known[id] {
			t.forget(id)
		}
	}
}

// forget drops a goods' counters. A count that is just being made may be lost with them.
func (t *Counters) forget(goodsID int64) {
	if _, had := t.goods.LoadAndDelete(goodsID); had {
		t.size.Add(-1)
	}
}

func (c *saleCounters) take() Counts {
	got := Counts{Orders: c.orders.Swap(0), Refusals: make(map[seckill.Reason]int64)}
	for reason, n := range c.refusals {
		if n := n.Swap(0); n > 0 {
			got.Refusals[reason] = n
		}
	}
	return got
}
