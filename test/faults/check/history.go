package check

import "time"

// History is all that was recorded of one sale, once everything was up and quiet again.
type History struct {
	Sale   Sale
	Buyers []Buyer
	Rows   []Row
	// Held is MySQL's table of what each buyer holds, RedisHeld the one in Redis.
	Held, RedisHeld map[int64]int64
	MovesNotGiven   int // releases that Redis was not given, cuts that have not ended
	Redis           Redis
	// Final is what the API says, in the end, of each order that was promised and that MySQL lacks or has as failed.
	Final       map[string]string
	Queued      int      // messages in all order queues, handed out or not
	DeadQueued  int      // messages in the broker's queue of dead letters
	DeadLetters []string // order numbers, "" for a message without one
}

// Sale is what was put up, and what MySQL says of it now.
type Sale struct {
	Units, Limit   int64
	StartAt, EndAt time.Time
	Stock, Total   int64
}

// Buyer is what one buyer did and was told.
type Buyer struct {
	ID     int64
	Paths  int       // random paths it tried to buy with
	Heard  []Promise // every 202
	Seen   []string  // the statuses of its order, in the order it was told them
	Faults int       // 5xx other than 503
	Unsaid int       // 503 without Retry-After
}

// Promise is one 202.
type Promise struct {
	Path, OrderSn string
	Asked, At     time.Time
}

// Row is one order in MySQL.
type Row struct {
	OrderSn  string
	BuyerID  int64
	Quantity int64
	Status   string
}

// Active tells whether the row holds units.
func (r Row) Active() bool { return r.Status == "created" || r.Status == "paid" }

// Redis is the ledger, and what lies behind it.
type Redis struct {
	Total, Available, Pending, Sold int64
	Balanced                        bool
	PendingEntries, OutboxEntries   int
}

// Expect says what a harm is allowed to do, all of it nothing unless said.
type Expect struct {
	DeadLetters int  // at most so many, of messages the harm itself planted
	MayBreak    bool // a promise may be broken (G5 says where), and its buyer must be told that it failed
}

// Violation is one guarantee that does not hold.
type Violation struct {
	Rule string // G1 to G7, or HTTP
	What string
}

// String is the line a report shows.
func (v Violation) String() string { return v.Rule + ": " + v.What }

// Verdict is what a run came to.
type Verdict struct {
	Violations              []Violation
	Orders                  int   // active ones in MySQL
	Lost, Doubled, Oversold int64 // orders, orders, units
	Broken                  int64 // promises that MayBreak lets fail, and that are told to have failed
}
