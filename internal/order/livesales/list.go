package livesales

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/workers"
)

// Store lists the sales that background workers serve.
type Store interface {
	// LiveGoods lists exposed sales, and sales that were closed at a moment or later. It leaves
	// out retired sales.
	LiveGoods(ctx context.Context, closedSince time.Time) ([]seckill.Sale, error)
}

// List holds the sales that background workers serve. Several goroutines may use it.
type List struct {
	Store          Store
	PaymentTimeout time.Duration // for which an order may stay unpaid
	Log            *slog.Logger

	mu        sync.Mutex
	sales     []seckill.Sale
	allReadAt time.Time      // of the last full refresh
	allSales  []seckill.Sale // its result
}

const (
	refreshInterval = time.Second
	// FullInterval is the time between full refreshes, which scan every sale ever closed.
	FullInterval = time.Minute
	// liveAfterClose is how long after its last payment deadline a closed sale is in every refresh.
	liveAfterClose = 24 * time.Hour
)

// Run refreshes the list until ctx ends.
func (l *List) Run(ctx context.Context) error {
	return workers.Every(ctx, refreshInterval, l.Refresh)
}

// Refresh reads the list once. A full refresh also reads sales that were closed long ago and are
// not retired, for example because Redis could not take units back.
func (l *List) Refresh(ctx context.Context) {
	l.mu.Lock()
	full := time.Since(l.allReadAt) >= FullInterval
	l.mu.Unlock()
	since := time.Unix(0, 0)
	if !full {
		since = time.Now().Add(-l.PaymentTimeout - liveAfterClose)
	}
	sales, err := l.Store.LiveGoods(ctx, since)
	if err != nil {
		if ctx.Err() == nil {
			l.Log.WarnContext(ctx, "cannot list live sales, using the last list", "err", err)
		}
		return
	}
	l.keep(sales, full)
}

// keep stores a list. Between full refreshes it keeps the old sales of the last full one.
func (l *List) keep(sales []seckill.Sale, full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if full {
		l.allReadAt, l.sales, l.allSales = time.Now(), sales, sales
		return
	}
	listed := make(map[int64]bool, len(sales))
	for _, s := range sales {
		listed[s.GoodsID] = true
	}
	for _, s := range l.allSales {
		if s.Status == seckill.Closed && !listed[s.GoodsID] {
			sales = append(sales, s)
		}
	}
	l.sales = sales
}

// Sales returns a copy of the list.
func (l *List) Sales() []seckill.Sale {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.sales)
}
