package rebuild

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/workers"
)

const (
	checkInterval = 200 * time.Millisecond
	// maxConcurrent bounds the sales that one process rebuilds at a time. A rebuild mostly waits.
	maxConcurrent = 32
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
	var g errgroup.Group
	g.SetLimit(maxConcurrent)
	err := workers.Every(ctx, checkInterval, func(ctx context.Context) { w.check(ctx, &g) })
	return errors.Join(err, g.Wait())
}

// check starts a rebuild of each sale that needs one, unless this process already rebuilds it.
func (w *Worker) check(ctx context.Context, g *errgroup.Group) {
	for _, sale := range w.Live.Sales() {
		if w.Rebuilder.reasonToRebuild(ctx, sale) == "" {
			continue
		}
		if _, running := w.running.LoadOrStore(sale.GoodsID, true); running {
			continue
		}
		started := g.TryGo(func() error {
			defer w.running.Delete(sale.GoodsID)
			w.Rebuilder.rebuildIfNeeded(ctx, sale)
			return nil
		})
		if !started {
			w.running.Delete(sale.GoodsID)
			return // the next check finds this sale again
		}
	}
}
