package order

import (
	"context"

	"flashsale.dev/seckill/internal/seckill"
)

// PendingStore is what Redis knows of reservations that MySQL may not have yet.
type PendingStore interface {
	Pending(ctx context.Context, goodsID int64, orderSn string) (seckill.OrderLine, bool, error)
	// PendingAmong tells which of the numbers, by goods, are pending.
	PendingAmong(ctx context.Context, numbers map[int64][]string) (map[string]bool, error)
	// View reads how a sale stands in Redis at this moment.
	View(ctx context.Context, goodsID int64) (seckill.View, error)
}

// SaleGetter knows whose a sale is; seckill.SaleService is one.
type SaleGetter interface {
	// Get reads a sale that the actor may manage; NotFound or Forbidden.
	Get(ctx context.Context, by seckill.Actor, goodsID int64) (seckill.Sale, error)
}
