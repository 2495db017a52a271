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
	// Most lowers the bounds of rebuilds under way, for a slow Redis; 0 does not. Each one renews its
	// lock twice a second, also while it waits.
	Most    int
	running sync.Map // goods ids of the rebuilds in this process
}

// Run works until ctx ends. Sales are rebuilt concurrently, so that none waits for the backlog of
// another. Those that requests wait for are first. They are checked between the others, too: with
// thousands of lost sales, one round of checks takes seconds.
func (w *Worker) Run(ctx context.Context) error {
	w.Rebuilder.slots = newSlots(maxWorking, w.Live.Asked)
	var asked, ongoing, others errgroup.Group
	most := cmp.Or(w.Most, maxAsked)
	asked.SetLimit(min(maxAsked, most))
	ongoing.SetLimit(min(maxOngoing, most))
	others.SetLimit(min(maxOthers, most))
	checkAsked := func(ctx context.Context) {
		for _, sale := range w.Live.AskedSales() {
			w.check(ctx, sale, &asked)
		}
	}
	var rounds errgroup.Group
	rounds.Go(func() error { return workers.Every(ctx, checkInterval, checkAsked) })
	rounds.Go(func() error {
		return workers.Every(ctx, checkInterval, func(ctx context.Context) {
			now := time.Now()
			for _, sale := range byUrgency(w.Live.Sales(), now) {
				g := &others
				if urgency(sale, now) == 0 {
					g = &ongoing
				}
				w.check(ctx, sale, g)
			}
		})
	})
	return errors.Join(rounds.Wait(), asked.Wait(), ongoing.Wait(), others.Wait())
}

func byUrgency(sales []seckill.Sale, now time.Time) []seckill.Sale {
	slices.SortStableFunc(sales, func(a, b seckill.Sale) int {
		return cmp.Compare(urgency(a, now), urgency(b, now))
	})
	return sales
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

// check starts a rebuild of a sale that needs one, unless this process already rebuilds it. If too
// many are under way, a later check starts it.
func (w *Worker) check(ctx context.Context, sale seckill.Sale, g *errgroup.Group) {
	if _, running := w.running.LoadOrStore(sale.GoodsID, true); running {
		return
	}
	started := w.Rebuilder.reasonToRebuild(ctx, sale) != "" && g.TryGo(func() error {
		defer w.running.Delete(sale.GoodsID)
		w.Rebuilder.rebuildIfNeeded(ctx, sale)
		return nil
	})
	if !started {
		w.running.Delete(sale.GoodsID)
	}
}
