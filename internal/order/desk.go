package order

import (
	"context"
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// SaleReader tells whether there is a goods, a sale or a bucket of one, and under which epoch; seckill.SaleReader is one.
type SaleReader interface {
	Sale(ctx context.Context, goodsID int64) (seckill.View, error)
}

// RedisDeadline bounds one call to Redis. After it the outcome is unknown.
const RedisDeadline = 2 * time.Second
