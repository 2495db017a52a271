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

// Store lists the sales that background work must look after.
type Store interface {
	// LiveGoods lists exposed sales and those that were closed at a moment or later (zero: ever), unless they are retired.
	LiveGoods(ctx context.Context, closedSince time.Time) ([]seckill.Sale, error)
}

// List is the list of sales that background work looks after, kept fresh from MySQL. While MySQL is away the last list
// serves: what is on sale does not change then.
type List struct {
	store     Store
	after     time.Duration // how long a sale is looked after when it has been closed
	log       *slog.Logger
	mu        sync.Mutex
	sales     []seckill.Sale
	allReadAt time.Time      // when every closed sale was looked for
	last      []seckill.Sale // the list of then
}

const (
	refreshInterval = time.Second
	// FullInterval is how often every sale that was ever closed is looked for: a walk over all of them.
	FullInterval = time.Minute
	// liveAfterClose is how long a closed sale is looked after when its last order can't be unpaid any more.
	liveAfterClose = 24 * time.Hour
)

// New makes an empty list. paymentTimeout is how long an order may stay unpaid.
func New(store Store, paymentTimeout time.Duration, log *slog.Logger) *List {
	return &List{store: store, after: paymentTimeout + liveAfterClose, log: log}
}

// Run keeps the list fresh until ctx ends.
func (l *List) Run(ctx context.Context) error { return workers.Every(ctx, refreshInterval, l.Refresh) }

// Refresh reads the list once. What was closed long ago and is not retired (units could not be given back, say) is looked
// for now and then, and looked after as the others.
func (l *List) Refresh(ctx context.Context) {
	since, whole := time.Now().Add(-l.after), l.readsAll()
	if whole {
		since = time.Unix(0, 0)
	}
	sales, err := l.store.LiveGoods(ctx, since)
	if err != nil {
		if ctx.Err() == nil {
			l.log.WarnContext(ctx, "can't list the sales to look after, going on with the last list", "err", err)
		}
		return
	}
	l.keep(sales, whole)
}

func (l *List) readsAll() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.allReadAt) >= FullInterval
}

// keep takes a list; between whole ones the old sales of the last one stay.
func (l *List) keep(sales []seckill.Sale, whole bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if whole {
		l.allReadAt, l.sales, l.last = time.Now(), sales, sales
		return
	}
	listed := make(map[int64]bool, len(sales))
	for _, s := range sales {
		listed[s.GoodsID] = true
	}
	for _, s := range l.last {
		if s.Status == seckill.Closed && !listed[s.GoodsID] {
			sales = append(sales, s)
		}
	}
	l.sales = sales
}

// Sales is the list as it was read last.
func (l *List) Sales() []seckill.Sale {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.sales)
}
