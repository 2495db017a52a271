package rebuild

import (
	"errors"
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// ErrFenced means that a newer rebuild of the sale has begun, or that its gate was opened, a
// merchant changed it or Redis was emptied during this one. This rebuild must stop and has changed
// nothing in Redis.
var ErrFenced = errors.New(
	"a newer rebuild of the sale has begun, or it was opened or changed, or Redis was emptied")

// FirstToken replaces a fencing token for the first epoch of a draft.
const FirstToken = 0

// Times are the moments that the beginning of an epoch needs.
type Times struct {
	Now   time.Time
	PayBy time.Time // when the parked orders that it writes expire unpaid
	// Redis is Redis' time. It chooses the final orders that are loaded, because Redis' clock judges
	// their paths. The clock of this process may be wrong by hours.
	Redis time.Time
}

// Snapshot is a sale in MySQL at the moment an epoch begins, read with the goods row locked.
// Redis loads all of it in one step.
type Snapshot struct {
	seckill.Sale
	Holdings []Holding // of every buyer with an active order, or a final one whose path is valid
}

// Holding is what one buyer holds of a goods.
type Holding struct {
	BuyerID int64
	Held    int64 // units of the active orders
	Orders  []HeldOrder
}

// HeldOrder is one order of a holding; a final one has no units.
type HeldOrder struct {
	OrderSn  string
	Quantity int64
}
