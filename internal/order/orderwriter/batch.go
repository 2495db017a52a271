package orderwriter

import (
	"time"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// Batch is what one transaction writes: lines of one goods. Numbers may stand in it twice and may be in MySQL already.
type Batch struct {
	GoodsID int64
	Lines   []reservation.OrderLine
	Epochs  map[string]int64 // of each order number, out of the number itself
	// Deliveries says of order numbers how the queue brought them, for their dead letters. It may lack numbers.
	Deliveries map[string]order.DeliveryInfo
	Adopted    map[string]bool // numbers of older epochs that Redis' epoch of today has taken in; nil for none
	Epoch      int64           // the epoch that adopted them; looked at only where Adopted is not empty
	Now        time.Time
	PayBy      time.Time
}
