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
	// maxWorking bounds the rebuilds of one process that work at a time. Most of them wait.
	maxWorking = 32
	// maxOngoing and maxOthers bound the rebuilds under way, of sales that sell now and of others.
	maxOngoing, maxOthers = 1000, 200
)

// Worker checks every live sale and rebuilds those that need it. It finds idle sales too.
type Worker struct {
	Live      *livesales.List
	Rebuilder *Rebuilder
	running   sync.Map // goods ids of the rebuilds in this process
}

// Run works until ctx ends. Sales are rebuilt concurrently, so that none waits for the backlog of
// another.
func (w *Worker) Run(ctx context.Context) error {
	w.Rebuilder.slots = make(slots, maxWorking)
	var ongoing, others errgroup.Group
	ongoing.SetLimit(maxOngoing)
	others.SetLimit(maxOthers)
	err := workers.Every(ctx, checkInterval, func(ctx context.Context) {
		sales := w.Live.Sales()
		now := time.Now()
		slices.SortStableFunc(sales, func(a, b seckill.Sale) int {
			return cmp.Compare(urgency(a, now), urgency(b, now))
		})
		for _, sale := range sales {
			g := &others
			if urgency(sale, now) == 0 {
				g = &ongoing
			}
			w.check(ctx, sale, g)
		}
	})
	return errors.Join(err, ongoing.Wait(), others.Wait())
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

// slots bound how many rebuilds work at a time. A rebuild that waits holds no slot. nil does not
// bound them.
type slots chan struct{}

func (s slots) take() {
	if s != nil {
		s <- struct{}{}
	}
}

func (s slots) free() {
	if s != nil {
		<-s
	}
}

// sleep waits without a slot. The error is that of an ended context.
func (s slots) sleep(ctx context.Context, d time.Duration) error {
	s.free()
	workers.Sleep(ctx, d)
	s.take()
	return ctx.Err()
}
