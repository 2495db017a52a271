package query

import (
	"context"
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// certainAfter is the age of a created row from which its commit is on disk. See Service.Find.
const certainAfter = time.Minute

// withUncertain sets the status queued, as Find does, on created orders that are pending in Redis.
// It checks all young orders of a list in one round trip. Their age is by the database's clock,
// which dated them; if it can't be read, all count as young. If Redis fails, the orders keep the
// status of MySQL.
func withUncertain(
	ctx context.Context, clock order.Clock, store Redis, orders []order.Order,
) []order.Order {
	now, _ := clock.Now(ctx)
	young := make(map[int64][]string)
	for _, o := range orders {
		if o.Status == order.Created && now.Sub(o.CreatedAt) < certainAfter {
			young[o.GoodsID] = append(young[o.GoodsID], o.OrderSn)
		}
	}
	if len(young) == 0 {
		return orders
	}
	pending, _ := store.PendingAmong(ctx, young)
	if pending == nil { // Redis failed; after a malformed line the others are known
		return orders
	}
	uncertain := make(map[int64]bool)
	for i, o := range orders {
		if _, listed := pending[o.OrderSn]; !listed || o.Status != order.Created {
			continue
		}
		if _, checked := uncertain[o.GoodsID]; !checked {
			uncertain[o.GoodsID] = commitUncertain(ctx, store, o.GoodsID)
		}
		if uncertain[o.GoodsID] {
			orders[i].Status, orders[i].PayBy = order.Queued, time.Time{}
		}
	}
	return orders
}

// commitUncertain reports whether a created order of a sale that Redis has pending may lack a
// durable row. It does not count behind a gate that is not open: a Redis that restarted may have
// lost the settling of an order, and a status must not go back from created to queued. The caller
// reads pending before that, so that both reads are of the same Redis.
func commitUncertain(ctx context.Context, store Redis, goodsID int64) bool {
	v, err := store.View(ctx, goodsID)
	return err == nil && v.Gate == seckill.GateOpen
}
