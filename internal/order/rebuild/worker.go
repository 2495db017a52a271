package rebuild

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/workers"
)

const (
	checkInterval = 200 * time.Millisecond
	// checkParts rounds together check every sale, in 5 s.
	checkParts = 25
	checkChunk = 100 // sales that one pipeline reads
	// maxWorking bounds the rebuilds of one process that work at a time. Most of them wait. With
	// few, the next free slot comes soon for a sale that requests wait for.
	maxWorking = 8
	// maxAsked, maxOngoing and maxOthers bound the rebuilds under way: of sales that requests wait
	// for, of sales that sell now and of others.
	maxAsked, maxOngoing, maxOthers = 1000, 1000, 200
)

// Worker checks every live sale and rebuilds those that need it. It finds idle sales too.
type Worker struct {
	Live      *livesales.List
	Rebuilder *Rebuilder
	// MaxRebuilds lowers the bounds of rebuilds under way, for a slow Redis; 0 does not. Each one
	// renews its lock twice a second, also while it waits.
	MaxRebuilds int
	running     sync.Map // goods ids of the rebuilds in this process
}

// Run works until ctx ends. Sales are rebuilt concurrently, so that none waits for the backlog of
// another. Those that requests wait for are first. They have rounds of their own, because thousands
// may be lost.
func (w *Worker) Run(ctx context.Context) error {
	w.Rebuilder.slots = newSlots(maxWorking, w.Live.Asked)
	var asked, ongoing, others errgroup.Group
	most := cmp.Or(w.MaxRebuilds, maxAsked)
	asked.SetLimit(min(maxAsked, most))
	ongoing.SetLimit(min(maxOngoing, most))
	others.SetLimit(min(maxOthers, most))
	var rounds errgroup.Group
	rounds.Go(func() error {
		return w.runRounds(ctx, w.Live.AskedSales, func(sales []seckill.Sale) {
			w.rebuildLost(ctx, sales, &asked)
		})
	})
	rounds.Go(func() error {
		return w.runRounds(ctx, w.Live.Sales, func(sales []seckill.Sale) {
			first, later := byUrgency(sales, time.Now())
			w.rebuildLost(ctx, first, &ongoing)
			w.rebuildLost(ctx, later, &others)
		})
	})
	return errors.Join(rounds.Wait(), asked.Wait(), ongoing.Wait(), others.Wait())
}

// runRounds checks the sales that are new in a list and a part of the others. So many sales at the
// same time take little of Redis. If one is lost it rebuilds all that are, because a Redis loses
// its sales together.
func (w *Worker) runRounds(
	ctx context.Context, list func() []seckill.Sale, rebuild func(sales []seckill.Sale),
) error {
	turn, known := 0, map[int64]bool{}
	return workers.Every(ctx, checkInterval, func(ctx context.Context) {
		sales, before := list(), known
		known = make(map[int64]bool, len(sales))
		due := livesales.Part(sales, &turn, checkParts)
		for _, s := range sales {
			if known[s.GoodsID] = true; !before[s.GoodsID] {
				due = append(due, s)
			}
		}
		for some := range slices.Chunk(due, checkChunk) {
			if len(w.lost(ctx, some)) > 0 {
				rebuild(sales)
				return
			}
		}
	})
}

// byUrgency returns the sales that sell now and the others, upcoming ones first. It sorts sales.
func byUrgency(sales []seckill.Sale, now time.Time) (ongoing, others []seckill.Sale) {
	slices.SortStableFunc(sales, func(a, b seckill.Sale) int {
		return cmp.Compare(urgency(a, now), urgency(b, now))
	})
	n, _ := slices.BinarySearchFunc(sales, 1, func(s seckill.Sale, others int) int {
		return cmp.Compare(urgency(s, now), others)
	})
	return sales[:n], sales[n:]
}

// urgency is 0 for a sale that sells now, 1 for one that will, and 2 for one that is over.
func urgency(sale seckill.Sale, now time.Time) int {
	switch {
	case sale.Status != seckill.Exposed || !now.Before(sale.EndAt):
		return 2
	case now.Before(sale.StartAt):
		return 1
	}
	return 0
}

// lost returns those of the sales that need a rebuild and have none in this process.
func (w *Worker) lost(ctx context.Context, sales []seckill.Sale) []seckill.Sale {
	idle := slices.DeleteFunc(slices.Clone(sales), func(s seckill.Sale) bool {
		_, running := w.running.Load(s.GoodsID)
		return running
	})
	reasons := w.Rebuilder.reasonsToRebuild(ctx, idle)
	return slices.DeleteFunc(idle, func(s seckill.Sale) bool { return reasons[s.GoodsID] == "" })
}

// rebuildLost starts rebuilds of those of the sales that need one. If too many are under way, a
// later round starts the others.
func (w *Worker) rebuildLost(ctx context.Context, sales []seckill.Sale, g *errgroup.Group) {
	for some := range slices.Chunk(sales, checkChunk) {
		for _, sale := range w.lost(ctx, some) {
			if !w.start(ctx, sale, g) {
				return
			}
		}
	}
}

// start starts a rebuild, unless too many are under way.
func (w *Worker) start(ctx context.Context, sale seckill.Sale, g *errgroup.Group) bool {
	if _, running := w.running.LoadOrStore(sale.GoodsID, true); running {
		return true
	}
	started := g.TryGo(func() error {
		defer w.running.Delete(sale.GoodsID)
		w.Rebuilder.rebuildIfNeeded(ctx, sale)
		return nil
	})
	if !started {
		w.running.Delete(sale.GoodsID)
	}
	return started
}
