package orderwriter

import (
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// Batch is the input of one transaction: order lines of one goods. An order number may occur twice,
// and MySQL may hold it already.
type Batch struct {
	GoodsID int64
	Lines   []reservation.OrderLine
	// Deliveries is the history in the queue by order number, for dead letters. It may lack
	// numbers.
	Deliveries map[string]order.DeliveryInfo
	Adopted    map[string]int64 // units of older epochs' orders that Redis adopted; may be nil
	Epoch      int64            // the epoch that adopted them; ignored if Adopted is empty
	Park       bool             // park late orders that are not adopted
	order.Times
}
