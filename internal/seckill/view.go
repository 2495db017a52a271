package seckill

import "time"

// View is the state of a sale in Redis at one moment. One script reads all of it. Where Redis has
// no state of a sale, the catalog makes the view from MySQL's row.
type View struct {
	Sale                // from Redis without Stock, Version, Retired and Details
	Gate      GateState // GateMissing in a view that was made from MySQL's row
	Lease     string    // of the master that loaded the sale
	OpenUntil time.Time // when the gate ends; zero if Redis cannot fail over
	Available int64     // units that may be reserved
	Pending   int64     // units reserved and not confirmed as written to MySQL
	Sold      int64     // units written and active
	// PendingSince is the beginning of the backlog: no pending order is older, unless a newer one
	// has overtaken it on its way to MySQL. It has no meaning while Pending is 0.
	PendingSince time.Time
	Outbox       int64     // entries that RabbitMQ has not confirmed
	OldestAt     time.Time // when the oldest entry was written; zero if there is none
	Now          time.Time // Redis' clock
}

// Phase returns the sale's phase at the time of the view.
func (v View) Phase() Phase { return v.PhaseAt(v.Now, v.Available) }

// PendingAge is the age of the backlog; 0 if no order is pending.
func (v View) PendingAge() time.Duration {
	if v.Pending == 0 {
		return 0
	}
	return max(0, v.Now.Sub(v.PendingSince))
}

// Ledger accounts for every unit of a sale. A balanced ledger has no unit missing or counted twice.
type Ledger struct {
	Total     int64    `json:"total"`
	Available int64    `json:"available"`
	Pending   int64    `json:"pending"`
	Sold      int64    `json:"sold"`
	Balanced  bool     `json:"balanced"`
	Epoch     int64    `json:"epoch"`
	Database  Database `json:"database"`
	// Differences and the equation together determine Balanced. JSON omits it while it is zero.
	Differences Differences `json:"differences,omitzero"`
}

// Differences counts what differs between Redis and MySQL for longer than a message takes.
type Differences struct {
	// Unsettled counts orders that are in MySQL and pending in Redis, for more than 5 s.
	Unsettled int `json:"unsettled"`
	// Unwritten counts orders that are pending for more than a minute and not in MySQL.
	Unwritten int `json:"unwritten"`
	// Unreleased counts stock moves and cuts that Redis has not applied, if the oldest is older
	// than 5 s.
	Unreleased int `json:"notReleased"`
	// Totals is 1 if the totals differ while nothing is in transit.
	Totals int `json:"totals"`
}

// Any reports whether there is a difference to repair. Unwritten orders are late, not wrong.
func (d Differences) Any() bool { return d.Unsettled+d.Unreleased+d.Totals > 0 }

// Database is the count of the same units in MySQL.
type Database struct {
	Stock  int64 `json:"stock"`  // units that no active order holds
	Active int64 `json:"active"` // units of created and paid orders
}

// AddsUp reports whether total = available + pending + sold, with no negative term.
func (l Ledger) AddsUp() bool {
	return l.Available >= 0 && l.Pending >= 0 && l.Sold >= 0 &&
		l.Total == l.Available+l.Pending+l.Sold
}
