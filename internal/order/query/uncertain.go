package query

import (
	"context"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// certainAfter is the age from which on a created row needs no second look: its commit is on disk, and clocks that differ are
// in it. See Finder.Find for what is looked for.
const certainAfter = time.Minute

// withUncertain calls queued, as Find does, what is created and still pending in Redis. Only young orders are asked for, all of a
// list in one round trip; where Redis can't be asked, MySQL's word stands.
func withUncertain(ctx context.Context, promises PendingStore, orders []order.Order) []order.Order {
	young := make(map[int64][]string)
	for _, o := range orders {
		if o.Status == order.Created && time.Since(o.CreatedAt) < certainAfter {
			young[o.GoodsID] = append(young[o.GoodsID], o.OrderSn)
		}
	}
	if len(young) == 0 {
		return orders
	}
	pending, err := promises.PendingAmong(ctx, young)
	if err != nil {
		return orders
	}
	doubt := make(map[int64]bool)
	for _, o := range orders {
		if _, asked := doubt[o.GoodsID]; pending[o.OrderSn] && !asked {
			doubt[o.GoodsID] = commitUncertain(ctx, promises, o.GoodsID)
		}
	}
	for i := range orders {
		if pending[orders[i].OrderSn] && orders[i].Status == order.Created && doubt[orders[i].GoodsID] {
			orders[i].Status, orders[i].PayBy = order.Queued, time.Time{}
		}
	}
	return orders
}

// commitUncertain tells whether what Redis calls pending of a goods may really be unwritten yet. Not while the gate is shut: a Redis
// that was restarted or replaced may have forgotten that an order was settled, and who was told "created" must not be told "queued"
// RetryTransaction. It is asked after pending was read, so that the gate of that same Redis is seen.
func commitUncertain(ctx context.Context, promises PendingStore, goodsID int64) bool {
	v, err := promises.View(ctx, goodsID)
	return err == nil && v.Gate == seckill.GateOpen
}
