package order

import (
	"errors"
	"fmt"
	"time"
)

// Outcome is what one transaction did, by order number. Each number of the batch is in exactly one of the three.
type Outcome struct {
	Epoch    int64                    // the goods' epoch, read with its row locked
	Created  []string                 // written now and active
	Failed   map[string]FailureReason // written now as failed, each with a dead letter and a move that gives its units back
	Existing map[string]Status        // were there before
	Moves    []StockMove              // to be given to Redis after the commit
}

// StockMove is one row of stock_moves: units that go back on sale, or a merchant's change of the stock.
// It is written in the transaction that changes the order or the goods, and given to Redis once, by its id.
type StockMove struct {
	ID       string // a UUIDv7
	GoodsID  int64
	Epoch    int64 // of the goods, read with its row locked
	BuyerID  int64 // 0 for a merchant's change
	OrderSn  string
	Quantity int64 // units; negative for a cut of the stock
	Kind     MoveKind
	MadeAt   time.Time
}

// MoveKind says why units move.
type MoveKind string

// The kinds of moves.
const (
	MoveCancel MoveKind = "cancel" // a created order was cancelled
	MoveExpire MoveKind = "expire" // a created order was not paid in time
	MoveFail   MoveKind = "fail"   // a reservation was never written: MySQL's stock does not change, only Redis' does
	MoveDelta  MoveKind = "delta"  // the merchant's stockDelta
)

// ErrTryAgain marks a transaction that lost to another one (MySQL's 1205, 1213 or 1020, a busy SQLite, a lost
// compare-and-swap) or whose connection went: nothing is wrong with the orders, and a new transaction may do it.
var ErrTryAgain = errors.New("transaction lost, try again in a new one")

// ErrSwapMissed is the ErrTryAgain of a compare-and-swap that missed: somebody wrote the goods between its being read and
// its being written.
var ErrSwapMissed = fmt.Errorf("%w: the goods' version has changed", ErrTryAgain)

// ErrNoSuchOrder says that MySQL has no row of an order number.
var ErrNoSuchOrder = errors.New("no such order")
