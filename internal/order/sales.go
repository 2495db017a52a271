package order

import (
	"context"
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// RedisDeadline bounds one call to Redis. After it the outcome is unknown.
const RedisDeadline = 2 * time.Second

// SaleReader reads the current state of sales; catalog.SaleReader implements it.
type SaleReader interface {
	// Sale returns one sale; NotFound if there is none or it is a draft.
	Sale(ctx context.Context, goodsID int64) (seckill.View, error)
	// ExposedSale is Sale for a goods id that a valid path or order number names. Only exposed
	// sales have these, so a sale that another node has exposed just now is not unknown.
	ExposedSale(ctx context.Context, goodsID int64) (seckill.View, error)
}
