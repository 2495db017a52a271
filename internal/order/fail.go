package order

import (
	"github.com/google/uuid"

	"flashsale.dev/seckill/internal/ordersn"
)

// DeadLetterID is the id of a dead letter whose order has no row, which nothing else would keep from being written again: the
// order number's own, so that it is kept once. Both are UUIDv7.
func DeadLetterID(orderSn string) string {
	if id, ok := ordersn.ID(orderSn); ok {
		return id.String()
	}
	return uuid.Must(uuid.NewV7()).String()
}
