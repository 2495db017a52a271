package inventory

import (
	"context"
	"errors"
	"time"

	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/workers"
)

// ChangeSyncer finishes changes that a process began and did not finish: open stock cuts, and
// fields that Redis lacks because it was down. Any number of processes may run one.
type ChangeSyncer struct {
	Stores
	Live *livesales.List
}

const (
	syncInterval = time.Second
	// cutAfter is the age from which a cut counts as abandoned. The service stops earlier.
	cutAfter = 5 * time.Second
	cutChunk = 100
)

// Run syncs every second until ctx ends.
func (s *ChangeSyncer) Run(ctx context.Context) error {
	return workers.Every(ctx, syncInterval, s.runOnce)
}

func (s *ChangeSyncer) runOnce(ctx context.Context) {
	err := errors.Join(s.finishCuts(ctx), s.syncFields(ctx),
		s.Store.ForgetKeys(ctx, time.Now().Add(-salechange.IdempotencyTTL)))
	if err != nil && ctx.Err() == nil {
		s.Log.WarnContext(ctx, "changes of sales can't be finished, trying again", "err", err)
	}
}

func (s *ChangeSyncer) finishCuts(ctx context.Context) error {
	open, err := s.Store.OpenCuts(ctx, time.Now().Add(-cutAfter), cutChunk)
	for _, c := range open {
		ended, _, failed := s.finishCut(ctx, c)
		switch {
		case failed == nil:
			s.Log.InfoContext(ctx, "finished an abandoned cut", "goods_id", c.GoodsID, "units",
				c.Quantity, "state", ended.State)
		case !errors.Is(failed, errCutOpen):
			err = errors.Join(err, failed)
		}
	}
	return err
}

// syncFields writes the fields in which Redis differs from MySQL. The list of live sales may be a
// second old, so syncSale reads the row again before it writes.
func (s *ChangeSyncer) syncFields(ctx context.Context) error {
	var errs []error
	for _, sale := range s.Live.Sales() {
		v, err := s.Redis.View(ctx, sale.GoodsID)
		if err != nil || v.Epoch != sale.Epoch || sameFields(v.Sale, sale) {
			continue // the rebuilder restores what Redis lost
		}
		errs = append(errs, s.syncSale(ctx, sale.GoodsID))
	}
	return errors.Join(errs...)
}

func sameFields(a, b seckill.Sale) bool {
	return a.Status == b.Status && a.Title == b.Title && a.Price == b.Price &&
		a.PerBuyerLimit == b.PerBuyerLimit &&
		a.StartAt.Equal(b.StartAt) && a.EndAt.Equal(b.EndAt) && a.Rate == b.Rate
}
