package inventory

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/workers"
)

// ChangeSyncer finishes what changes of sales left half done: cuts whose maker died, and fields of which Redis has not heard
// because it was away. Any number may be at work.
type ChangeSyncer struct {
	live  *livesales.List
	store ChangeStore
	redis ChangeRedis
	now   func() time.Time
	log   *slog.Logger
}

const (
	syncInterval = time.Second
	// cutAfter is how old a cut must be before it is taken for left behind: its maker gives up before.
	cutAfter = 5 * time.Second
	cutChunk = 100
)

// NewChangeSyncer makes a steward.
func NewChangeSyncer(live *livesales.List, store ChangeStore, shelf ChangeRedis, log *slog.Logger) *ChangeSyncer {
	return &ChangeSyncer{live: live, store: store, redis: shelf, now: time.Now, log: log}
}

// Run makes the rounds until ctx ends.
func (s *ChangeSyncer) Run(ctx context.Context) error {
	return workers.Every(ctx, syncInterval, s.runOnce)
}

func (s *ChangeSyncer) runOnce(ctx context.Context) {
	err := errors.Join(s.cuts(ctx), s.fields(ctx), s.store.ForgetKeys(ctx, s.now().Add(-seckill.IdempotencyTTL)))
	if err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "changes of sales are finished later", "err", err)
	}
}

func (s *ChangeSyncer) cuts(ctx context.Context) error {
	open, err := s.store.OpenCuts(ctx, s.now().Add(-cutAfter), cutChunk)
	for _, c := range open {
		ended, _, failed := finishCut(ctx, s.store, s.redis, c, s.now())
		if failed == nil {
			s.log.InfoContext(ctx, "finished a cut that was left behind", "goods_id", c.GoodsID, "units", c.Quantity, "state", ended.State)
		} else if !errors.Is(failed, errCutOpen) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// fields brings to Redis what it has otherwise than MySQL.
func (s *ChangeSyncer) fields(ctx context.Context) error {
	var errs []error
	for _, sale := range s.live.Sales() {
		v, err := s.redis.View(ctx, sale.GoodsID)
		if err != nil || v.Epoch != sale.Epoch || sameFields(v.Sale, sale) {
			continue // what Redis has lost is the rebuilder's matter
		}
		if sale, err = s.store.Sale(ctx, sale.GoodsID); err == nil && !sameFields(v.Sale, sale) {
			err = s.redis.UpdateSale(ctx, sale)
		}
		if err != nil && !errors.Is(err, seckill.ErrNotLoaded) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func sameFields(a, b seckill.Sale) bool {
	return a.Status == b.Status && a.Title == b.Title && a.Price == b.Price && a.PerBuyerLimit == b.PerBuyerLimit &&
		a.StartAt.Equal(b.StartAt) && a.EndAt.Equal(b.EndAt) && a.Rate == b.Rate
}
