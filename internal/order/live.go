package order

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// LiveStore lists the sales that background work must look after.
type LiveStore interface {
	// LiveGoods lists exposed sales and those that were closed at a moment or later.
	LiveGoods(ctx context.Context, closedSince time.Time) ([]seckill.Sale, error)
}

// Live is the list of sales that background work looks after, kept fresh from MySQL. While MySQL is away the last list
// serves: what is on sale does not change then.
type Live struct {
	store LiveStore
	after time.Duration // how long a sale is looked after when it has been closed
	log   *slog.Logger
	mu    sync.Mutex
	sales []seckill.Sale
}

const (
	liveEvery = time.Second
	// liveBeyond is how long a closed sale is looked after when its last order can't be unpaid any more.
	liveBeyond = 24 * time.Hour
)

// NewLive makes an empty list. paymentTimeout is how long an order may stay unpaid.
func NewLive(store LiveStore, paymentTimeout time.Duration, log *slog.Logger) *Live {
	return &Live{store: store, after: paymentTimeout + liveBeyond, log: log}
}

// Run keeps the list fresh until ctx ends.
func (l *Live) Run(ctx context.Context) error { return every(ctx, liveEvery, l.Refresh) }

// Refresh reads the list once.
func (l *Live) Refresh(ctx context.Context) {
	sales, err := l.store.LiveGoods(ctx, time.Now().Add(-l.after))
	if err != nil {
		if ctx.Err() == nil {
			l.log.WarnContext(ctx, "can't list the sales to look after, going on with the last list", "err", err)
		}
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sales = sales
}

// Sales is the list as it was read last.
func (l *Live) Sales() []seckill.Sale {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.sales)
}
