package payment

import (
	"context"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/order/inventory"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/workers"
)

// Expirer expires unpaid orders and returns their units to the sale. It works in batches per sale,
// so that it rarely competes with the consumer for the goods row.
type Expirer struct {
	// Sales lists the sales that are not at rest.
	Sales    func() []seckill.Sale
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

// runOnce asks for all sales together whose orders are due: most have none most of the time.
func (e *Expirer) runOnce(ctx context.Context) {
	now, err := e.Store.Now(ctx)
	var overdue []int64
	if err == nil {
		overdue, err = e.Store.Overdue(ctx, seckill.GoodsIDs(e.Sales()), now)
	}
	workers.Warn(ctx, e.Log, "cannot find overdue orders, retrying", err)
	workers.Each(ctx, overdue, func(ctx context.Context, goodsID int64) {
		moves, err := e.Store.ExpireDue(ctx, goodsID, now, expireChunk)
		workers.Warn(ctx, e.Log, "cannot expire orders, retrying", err, "goods_id", goodsID)
		e.Releaser.Release(ctx, moves)
	})
}
