package seckill

import "time"

// View is a sale as Redis has it at one moment, all from one script.
type View struct {
	Sale                // as it was loaded, kept up to date by changes; Stock and Version are MySQL's alone and stay 0
	Gate      GateState // GateOpen, GateShut or GateLease; a missing sale has no view
	Available int64     // units that may be reserved
	Pending   int64     // units reserved and not known to be in MySQL
	Sold      int64     // units written and active
	// PendingSince is a moment before which nothing is pending, as far as settling has gone in order; it means
	// something only while Pending > 0.
	PendingSince time.Time
	Outbox       int64     // entries that RabbitMQ has not confirmed
	OldestAt     time.Time // when the oldest of them was written; zero where there is none
	Now          time.Time // Redis' clock
}

// Ledger accounts for every unit of a sale.
type Ledger struct {
	Total     int64    `json:"total"`
	Available int64    `json:"available"`
	Pending   int64    `json:"pending"`
	Sold      int64    `json:"sold"`
	Balanced  bool     `json:"balanced"`
	Epoch     int64    `json:"epoch"`
	Database  Database `json:"database"`
	// Differences is what Balanced goes by, besides the equation; left out while there is none.
	Differences Differences `json:"differences,omitzero"`
}

// Differences counts what has been in one place and not in the other for longer than on its way.
type Differences struct {
	Unsettled  int `json:"unsettled"` // orders in MySQL and still pending in Redis, for more than 5 s
	Unwritten  int `json:"unwritten"` // orders pending for more than a minute and not in MySQL; they are still promised
	Unreleased int `json:"notGiven"`  // moves of units that Redis has not been given, the oldest for more than 5 s
	Totals     int `json:"totals"`    // 1 where with nothing under way the totals differ
}

// Any tells whether something differs that ought not to: a promise that waits is no difference yet.
func (d Differences) Any() bool { return d.Unsettled+d.Unreleased+d.Totals > 0 }

// Database is what MySQL says of the same units.
type Database struct {
	Stock  int64 `json:"stock"`  // units that no active order holds
	Active int64 `json:"active"` // units of created and paid orders
}

// Adds tells whether total = available + pending + sold, with no term below zero.
func (l Ledger) AddsUp() bool {
	return l.Available >= 0 && l.Pending >= 0 && l.Sold >= 0 && l.Total == l.Available+l.Pending+l.Sold
}
