package payment

import (
	"context"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/order/livesales"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/workers"
)

// Expirer expires unpaid orders and returns their units to the sale. It works in batches per sale,
// so that it rarely competes with the consumer for the goods row.
type Expirer struct {
	Live     *livesales.List
	Store    Store
	Releaser *inventory.StockReleaser
	Log      *slog.Logger
}

const (
	expireEvery = 500 * time.Millisecond
	expireChunk = 500
)

// Run expires until ctx ends.
func (e *Expirer) Run(ctx context.Context) error {
	return workers.Every(ctx, expireEvery, e.runOnce)
}

func (e *Expirer) runOnce(ctx context.Context) {
	workers.Each(ctx, e.Live.Sales(), func(ctx context.Context, sale seckill.Sale) {
		moves, err := e.expireDue(ctx, sale.GoodsID)
		workers.Warn(ctx, e.Log, "can't expire orders, will retry", err, "goods_id", sale.GoodsID)
		e.Releaser.Release(ctx, moves)
	})
}

func (e *Expirer) expireDue(ctx context.Context, goodsID int64) ([]order.StockMove, error) {
	now, err := e.Store.Now(ctx)
	if err != nil {
		return nil, err
	}
	return e.Store.ExpireDue(ctx, goodsID, now, expireChunk)
}
