package order

import (
	"context"

	"flashsale.dev/seckill/internal/seckill"
)

// SaleGetter knows whose a sale is; seckill.SaleService is one.
type SaleGetter interface {
	// Get reads a sale that the actor may manage; NotFound or Forbidden.
	Get(ctx context.Context, by seckill.Actor, goodsID int64) (seckill.Sale, error)
}
