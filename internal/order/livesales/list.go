package livesales

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/workers"
)

// Store lists the sales that background workers serve.
type Store interface {
	// LiveGoods lists exposed and closed sales by goods id: those of some buckets, or all if
	// buckets is nil. It leaves out retired sales.
	LiveGoods(ctx context.Context, buckets []int64) ([]seckill.Sale, error)
	// LiveVersions returns a number for each bucket that has such sales. It changes with every
	// change of what LiveGoods lists of the bucket.
	LiveVersions(ctx context.Context) (map[int64]int64, error)
	// HasUnpaid reports whether orders of a goods are created and not paid.
	HasUnpaid(ctx context.Context, goodsID int64) (bool, error)
}

// Buckets is how many buckets the sales are in: a sale's is its goods id modulo Buckets. A sale
// that changes has the rows of its bucket read, and not those of all sales.
const Buckets = 256

// Redis holds the sales.
type Redis interface {
	// Views reads sales, by goods id. It leaves out those whose master does not answer.
	Views(ctx context.Context, goodsIDs []int64) map[int64]seckill.View
	// EndedRests lists the sales that processes have asked to serve in the last seconds.
	EndedRests(ctx context.Context) ([]int64, error)
}

// Sale is a live sale.
type Sale struct {
	seckill.Sale
	AtRest bool // no worker has anything to do for the sale

	settledSince time.Time // by all checks; zero if the last one found something to do
}

// List holds the sales that background workers serve. Several goroutines may use it.
type List struct {
	Store Store
	Redis Redis
	Log   *slog.Logger

	mu     sync.Mutex
	sales  []*Sale        // replaced, never changed; the lock guards the elements
	served []seckill.Sale // those that are not at rest, unless stale
	stale  bool           // a rest has begun or ended since served was made
	lines  []seckill.Sale // exposed sales with a waiting room
	asked  map[int64]bool // the goods ids of the last EndedRests
	turn   int            // the index of the next sale to check

	versions map[int64]int64 // of the buckets; replaced, never changed
	readAt   time.Time       // when the last refresh began that read rows
	allAt    time.Time       // when the last refresh began that read all rows
}

const (
	// The list waits refreshFactor times as long as a refresh took, from refreshInterval to
	// maxRefresh, because MySQL reads a row for each sale. The wait ends early if a process asks to
	// serve a sale that the list lacks.
	refreshInterval = time.Second
	refreshFactor   = 300
	maxRefresh      = 6 * time.Second
	checkInterval   = 750 * time.Millisecond
	paidDeadline    = 2 * time.Second // so that a MySQL that hangs delays no other check
	// endInterval and the rebuilder's interval are together less than a second.
	endInterval = 500 * time.Millisecond
	// checkParts checks together read every sale once, in a minute.
	checkParts = 80
	// restAfter is how long checks find nothing to do for a sale before it rests. Where there are
	// many sales, two checks of one sale are further apart, so that two of them suffice.
	restAfter = 20 * time.Second
	// minPart is how many sales a part has at least, so that a few are read in seconds.
	minPart = 20
	// FullInterval is the longest time between two refreshes that read all rows.
	FullInterval = 5 * time.Minute
)

// Run refreshes and checks the list until ctx ends. Each step has its own goroutine. So a loss that
// a request has met does not wait for MySQL, or for a master that does not answer.
func (l *List) Run(ctx context.Context) error {
	var g errgroup.Group
	g.Go(func() error { return l.runRefreshing(ctx) })
	g.Go(func() error { return workers.Every(ctx, endInterval, l.endRests) })
	g.Go(func() error { return workers.Every(ctx, checkInterval, l.Check) })
	return g.Wait()
}

// runRefreshing refreshes until ctx ends.
func (l *List) runRefreshing(ctx context.Context) error {
	for ctx.Err() == nil {
		began := time.Now()
		err := l.Refresh(ctx)
		workers.Warn(ctx, l.Log, "cannot list live sales, using the last list", err)
		wait := min(max(refreshInterval, refreshFactor*time.Since(began)), maxRefresh)
		for ; wait > 0 && ctx.Err() == nil; wait -= refreshInterval {
			workers.Sleep(ctx, min(wait, refreshInterval))
			if l.lacksAsked() {
				break
			}
		}
	}
	return nil
}

// lacksAsked reports whether a process asks to serve a sale that was exposed after the last
// refresh.
func (l *List) lacksAsked() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.askedSales()) < len(l.asked)
}

// Refresh reads the buckets that have changed, and each FullInterval all of them. It includes sales
// that were closed long ago and are not retired: Redis could not take units back, or an operator
// requeues an order.
func (l *List) Refresh(ctx context.Context) error {
	began := time.Now()
	// The versions are read before the rows: the next refresh finds a change in between.
	versions, err := l.Store.LiveVersions(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	changed, all := changes(l.versions, versions), time.Since(l.allAt) >= FullInterval
	l.mu.Unlock()
	if !all && len(changed) == 0 {
		return nil
	}
	if all || len(changed) >= len(versions) { // as many buckets as there are
		changed = nil
	}
	sales, err := l.Store.LiveGoods(ctx, changed)
	if err == nil {
		l.keep(sales, changed, versions, began)
	}
	return err
}

// changes returns the buckets whose version differs, or that only one of both has.
func changes(before, after map[int64]int64) (buckets []int64) {
	for bucket, version := range after {
		if was, had := before[bucket]; !had || was != version {
			buckets = append(buckets, bucket)
		}
	}
	for bucket := range before {
		if _, has := after[bucket]; !has {
			buckets = append(buckets, bucket)
		}
	}
	return buckets
}

// keep stores the sales of some buckets, or of all if buckets is nil, unless a refresh that began
// later has stored some. A sale whose row changed is not at rest.
func (l *List) keep(
	sales []seckill.Sale, buckets []int64, versions map[int64]int64, began time.Time,
) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if began.Before(l.readAt) {
		return
	}
	l.versions, l.readAt, l.stale = versions, began, true
	if buckets == nil {
		l.allAt = began
	}
	known := make(map[int64]*Sale, len(sales))
	kept := make([]*Sale, 0, len(l.sales)+len(sales))
	for _, s := range l.sales {
		if buckets == nil || slices.Contains(buckets, s.GoodsID%Buckets) {
			known[s.GoodsID] = s
		} else {
			kept = append(kept, s)
		}
	}
	for _, sale := range sales {
		s := known[sale.GoodsID]
		if s == nil || s.Sale != sale {
			s = &Sale{Sale: sale}
		}
		kept = append(kept, s)
	}
	slices.SortFunc(kept, func(a, b *Sale) int { return cmp.Compare(a.GoodsID, b.GoodsID) })
	l.sales, l.lines = kept, nil
	for _, s := range kept {
		if s.Admission == seckill.ByWaitingRoom && s.Status == seckill.Exposed {
			l.lines = append(l.lines, s.Sale)
		}
	}
}

// Sales returns the sales that are not at rest. Workers ask for them many times a second.
func (l *List) Sales() []seckill.Sale {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stale {
		l.served, l.stale = l.filter(func(s *Sale) bool { return !s.AtRest }), false
	}
	return slices.Clone(l.served)
}

// Lines returns the sales whose line buyers may join, also those at rest: they join before the sale
// starts.
func (l *List) Lines() []seckill.Sale {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// filter returns the sales to keep. The caller holds the lock.
func (l *List) filter(keep func(*Sale) bool) (kept []seckill.Sale) {
	for _, s := range l.sales {
		if keep(s) {
			kept = append(kept, s.Sale)
		}
	}
	return kept
}

// All returns every sale, by goods id.
func (l *List) All() []Sale {
	l.mu.Lock()
	defer l.mu.Unlock()
	sales := make([]Sale, len(l.sales))
	for i, s := range l.sales {
		sales[i] = *s
	}
	return sales
}

// endRests ends the rests of sales that a process asks to serve.
func (l *List) endRests(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, order.RedisDeadline)
	defer cancel()
	ended, _ := l.Redis.EndedRests(ctx) // without an answer, checks find the sales later
	asked := make(map[int64]bool, len(ended))
	for _, id := range ended {
		asked[id] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = asked
	if len(asked) == 0 {
		return
	}
	for _, s := range l.sales {
		if asked[s.GoodsID] {
			l.endRest(s)
		}
	}
}

// Asked reports whether a process asked in the last seconds to serve a sale.
func (l *List) Asked(goodsID int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked[goodsID]
}

// AskedSales returns the sales that a process asked to serve in the last seconds.
func (l *List) AskedSales() []seckill.Sale {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.askedSales()
}

// askedSales is AskedSales for a caller that holds the lock.
func (l *List) askedSales() []seckill.Sale {
	if len(l.asked) == 0 {
		return nil
	}
	return l.filter(func(s *Sale) bool { return l.asked[s.GoodsID] })
}

// Check reads a part of the sales in Redis, and begins or ends their rests. It leaves a sale alone
// whose master does not answer, because no worker could serve it.
func (l *List) Check(ctx context.Context) {
	l.mu.Lock()
	due := Part(l.sales, &l.turn, checkParts)
	l.mu.Unlock()
	goodsIDs := make([]int64, len(due))
	for i, s := range due {
		goodsIDs[i] = s.GoodsID
	}
	views := l.Redis.Views(ctx, goodsIDs)
	ctx, cancel := context.WithTimeout(ctx, paidDeadline)
	defer cancel()
	for _, s := range due {
		if v, answered := views[s.GoodsID]; answered {
			l.noteCheck(s, inSync(s.Sale, v) && l.allPaid(ctx, s))
		}
	}
}

// Part returns the next sales of a list, from the index turn on, and moves turn behind them. While
// the list stays the same, parts calls together return each sale at least once. A call returns at
// least minPart sales, or all if there are fewer. turn is an index and not a count of calls: a sale
// that joins or leaves the list then shifts the parts by one sale only.
func Part[S any](sales []S, turn *int, parts int) (due []S) {
	for range min(max(minPart, len(sales)/parts+1), len(sales)) {
		i := *turn % len(sales)
		due, *turn = append(due, sales[i]), i+1
	}
	return due
}

// inSync reports whether Redis and MySQL agree about a sale, and nothing of it is in flight.
func inSync(s seckill.Sale, v seckill.View) bool {
	return v.Gate == seckill.GateOpen && v.Epoch == s.Epoch && v.SameTerms(s) &&
		v.Total == s.Total && v.Available == s.Stock && v.Sold == s.Total-s.Stock &&
		v.Pending == 0 && v.Outbox == 0
}

// allPaid reports whether no order waits for its payment. A sale at rest has none: every later
// order changes its row, which ends the rest.
func (l *List) allPaid(ctx context.Context, s *Sale) bool {
	l.mu.Lock()
	paid := s.AtRest || s.Stock == s.Total
	l.mu.Unlock()
	if paid {
		return true
	}
	unpaid, err := l.Store.HasUnpaid(ctx, s.GoodsID)
	return err == nil && !unpaid
}

// noteCheck begins or ends a rest after a check, which found the sale settled or not.
func (l *List) noteCheck(s *Sale, settled bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !settled:
		l.endRest(s)
	case s.settledSince.IsZero():
		s.settledSince = time.Now()
	case !s.AtRest && time.Since(s.settledSince) >= restAfter:
		s.AtRest, l.stale = true, true
	}
}

// endRest has a sale served until checks find it settled again. The caller holds the lock.
func (l *List) endRest(s *Sale) {
	l.stale = l.stale || s.AtRest
	s.AtRest, s.settledSince = false, time.Time{}
}
