package payment

import (
	"context"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/workers"
)

// Expirer expires unpaid orders and returns their units to the sale. It works in batches per sale,
// so that it rarely competes with the consumer for the goods row.
type Expirer struct {
	live     *livesales.List
	store    Store
	releaser *inventory.StockReleaser
	now      func() time.Time
	log      *slog.Logger
}

const (
	expireEvery = 500 * time.Millisecond
	expireChunk = 500
)

// NewExpirer returns an expirer of the live sales' orders.
func NewExpirer(
	live *livesales.List, store Store, releaser *inventory.StockReleaser, log *slog.Logger,
) *Expirer {
	return &Expirer{live: live, store: store, releaser: releaser, now: time.Now, log: log}
}

// Run expires until ctx ends.
func (e *Expirer) Run(ctx context.Context) error {
	return workers.Every(ctx, expireEvery, e.runOnce)
}

func (e *Expirer) runOnce(ctx context.Context) {
	for _, sale := range e.live.Sales() {
		moves, err := e.store.ExpireDue(ctx, sale.GoodsID, e.now(), expireChunk)
		if err != nil {
			if ctx.Err() == nil {
				e.log.WarnContext(ctx, "can't expire orders, will retry", "goods_id", sale.GoodsID,
					"err", err)
			}
			continue
		}
		e.releaser.Release(ctx, moves)
	}
}
