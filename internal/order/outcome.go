package order

import (
	"errors"
	"fmt"
	"time"
)

// Outcome is the result of one transaction, by order number. Each number of the batch is in exactly
// one of Created, Failed and Existing, unless it is parked: a late order that waits for units.
type Outcome struct {
	Created  []string                 // written now as created
	Failed   map[string]FailureReason // written now as failed, with dead letter and move
	Existing map[string]Status        // written before
	Moves    []StockMove              // to apply to Redis after the commit
}

// StockMove is one row of stock_moves: units that return to the sale, or a merchant's change of the
// stock. The transaction that changes the order or the goods writes it. Redis applies it once, by
// its id.
type StockMove struct {
	ID       string // a UUIDv7
	GoodsID  int64
	Epoch    int64  // of the sale, read with its row locked
	BuyerID  string // "" for a merchant's change
	OrderSn  string
	Quantity int64 // units; negative for a cut of the stock
	Kind     MoveKind
	MadeAt   time.Time
}

// MoveKind is the reason of a stock move.
type MoveKind string

// The kinds of moves.
const (
	MoveCancel MoveKind = "cancel" // a created order was cancelled
	MoveExpire MoveKind = "expire" // a created order was not paid in time
	MoveFail   MoveKind = "fail"   // a reservation was not written: only Redis' stock changes
	MoveDelta  MoveKind = "delta"  // the merchant's stockDelta
)

// ErrTryAgain marks a transaction that lost to another one or whose connection failed. A new
// transaction may succeed. Causes are MySQL's errors 1205, 1213 and 1020, a busy SQLite and a
// failed compare-and-swap.
var ErrTryAgain = errors.New("transaction lost, try again in a new one")

// ErrSwapMissed is the ErrTryAgain of a failed compare-and-swap: another transaction wrote the
// goods row between read and write.
var ErrSwapMissed = fmt.Errorf("%w: the goods' version has changed", ErrTryAgain)

// ErrNoSuchOrder means that MySQL has no row of an order number.
var ErrNoSuchOrder = errors.New("no such order")
