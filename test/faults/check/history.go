package check

import (
	"time"

	"flashsale.dev/seckill/internal/testing/buyers"
)

// History has the records of one sale, once every server works and the sale is drained.
type History struct {
	Sale     Sale
	Buyers   []buyers.Result // the answers to each buyer
	Rows     []Row           // orders in MySQL
	Holdings map[int64]int64 // units of each buyer in MySQL's table of holdings
	Redis    Redis

	PendingMoves int // stock moves and cuts that are not applied to Redis
	// last answers on promised orders that MySQL lacks or has as failed
	Final       map[string]string
	Queued      int      // messages in all order queues, delivered or not
	DeadQueued  int      // messages in the broker's queue of dead letters
	DeadLetters []string // order numbers in MySQL, "" for a message without one
}

// Sale is the sale as it was created, and MySQL's numbers of it.
type Sale struct {
	Units, Limit   int64
	StartAt, EndAt time.Time
	Stock, Total   int64
}

// Row is one order in MySQL.
type Row struct {
	OrderSn, Status            string
	GoodsID, BuyerID, Quantity int64
}

// Active reports whether the row holds units.
func (r Row) Active() bool { return r.Status == "created" || r.Status == "paid" }

// Redis is the ledger, and the keys that it sums up.
type Redis struct {
	Total, Available, Pending, Sold int64
	Balanced                        bool
	PendingEntries, OutboxEntries   int
	Holdings                        map[int64]int64 // units of each buyer
}

// Allowance lists the deviations from the guarantees that a fault may cause.
type Allowance struct {
	DeadLetters    int  // number of poison messages that the fault publishes
	BrokenPromises bool // a promised order may fail, if its buyer got that answer
}

// Violation is one guarantee that does not hold.
type Violation struct {
	Rule string // G1 to G7, or HTTP
	What string
}

// String is the violation as a report shows it.
func (v Violation) String() string { return v.Rule + ": " + v.What }

// Verdict is the result of a run.
type Verdict struct {
	Violations              []Violation
	Orders                  int   // active ones in MySQL
	Lost, Doubled, Oversold int64 // orders, orders, units
	Broken                  int64 // promised orders that failed as BrokenPromises allows
}
