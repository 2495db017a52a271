package deadletter

import (
	"context"

	"flashsale.dev/seckill/internal/order/orderwriter"
	"flashsale.dev/seckill/internal/seckill"
)

// Redis reserves units for a requeued order.
type Redis interface {
	// View reads the current state of a sale.
	View(ctx context.Context, goodsID int64) (seckill.View, error)
	orderwriter.Settler
}
