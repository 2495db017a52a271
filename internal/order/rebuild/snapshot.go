package rebuild

import (
	"flashsale.dev/seckill/internal/seckill"
)

// Snapshot is a sale's truth at the moment an epoch begins: read from MySQL with the goods row locked,
// loaded into Redis whole.
type Snapshot struct {
	seckill.Sale
	Holdings []Holding // of every buyer who holds something
}

// Holding is what one buyer has of a goods.
type Holding struct {
	BuyerID int64
	Held    int64 // units of the active orders
	Orders  []HeldOrder
}

// HeldOrder is one active order of a holding.
type HeldOrder struct {
	OrderSn  string
	Quantity int64
}
