package inventory

import (
	"context"
	"errors"
	"time"

	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/workers"
)

// ChangeSyncer finishes changes that a process began and did not finish: open stock cuts, and
// fields that Redis lacks because it was down. Any number of processes may run one.
type ChangeSyncer struct {
	Stores
	// Sales lists the sales that are not at rest.
	Sales func() []seckill.Sale

	turn int // the index of the next sale to compare
}

const (
	syncInterval = time.Second
	// syncParts rounds together compare every sale, in 10 s.
	syncParts = 10
	// cutAfter is the age from which a cut counts as abandoned. The service stops earlier.
	cutAfter = 5 * time.Second
	cutChunk = 100
)

// Run syncs every second until ctx ends.
func (s *ChangeSyncer) Run(ctx context.Context) error {
	return workers.Every(ctx, syncInterval, s.runOnce)
}

func (s *ChangeSyncer) runOnce(ctx context.Context) {
	s.syncFields(ctx)
	err := s.finishCuts(ctx)
	workers.Warn(ctx, s.Log, "cannot finish changes of sales, retrying", err)
}

// finishCuts serves every abandoned cut. It pages past those that Redis cannot decide now.
func (s *ChangeSyncer) finishCuts(ctx context.Context) error {
	now, err := s.Store.Now(ctx)
	if err != nil {
		return err
	}
	before := now.Add(-cutAfter)
	for after := ""; ; {
		open, err := s.Store.OpenCuts(ctx, before, after, cutChunk)
		if err != nil || len(open) == 0 {
			return err
		}
		workers.Each(ctx, open, s.finishAbandoned)
		after = open[len(open)-1].ID
	}
}

// finishAbandoned finishes one cut if Redis decides it now.
func (s *ChangeSyncer) finishAbandoned(ctx context.Context, c StockCut) {
	ended, _, err := s.finishCut(ctx, c)
	log := s.Log.With("goods_id", c.GoodsID, "units", c.Quantity)
	switch {
	case err == nil:
		log.InfoContext(ctx, "finished an abandoned cut", "state", ended.State)
	case !errors.Is(err, errCutOpen) && ctx.Err() == nil:
		log.WarnContext(ctx, "cannot finish an abandoned cut, retrying", "err", err)
	}
}

// syncFields writes the fields in which Redis differs from MySQL, of the sales whose turn it is.
// The list of live sales may be seconds old, so syncSale reads the row again before it writes.
func (s *ChangeSyncer) syncFields(ctx context.Context) {
	due := livesales.Part(s.Sales(), &s.turn, syncParts)
	views := s.Redis.Views(ctx, seckill.GoodsIDs(due))
	workers.Each(ctx, due, func(ctx context.Context, sale seckill.Sale) {
		v, answered := views[sale.GoodsID]
		if !answered || v.Epoch != sale.Epoch || v.SameTerms(sale) {
			return // the rebuilder restores what Redis lost
		}
		err := s.syncSale(ctx, sale.GoodsID)
		workers.Warn(ctx, s.Log, "cannot bring a change of a sale into Redis, retrying", err,
			"goods_id", sale.GoodsID)
	})
}
