// Package roommodel is the rule by which a waiting room admits buyers, in Go. scripts/lua/admit.lua
// has the same rule: a test of redisstore compares both. The tests of this package check what the
// rule promises.
package roommodel

import (
	"time"

	"flashsale.dev/seckill/internal/waitingroom"
)

// Room is what decides about the next admissions, all of one moment.
type Room struct {
	waitingroom.Room
	StartAt, EndAt time.Time // admissions happen in [StartAt, EndAt)
	PerBuyerLimit  int64     // most units of one admission, at least 1
	Joined         int64     // numbers handed out; positions 1 to Joined exist
	// Outstanding counts the admissions that can still buy: neither used, nor left, nor lapsed. An
	// admission permits one purchase.
	Outstanding int64
	Available   int64 // units on sale
	Pending     int64 // units that are reserved and not yet in an order
	// Held are units that can return before EndAt: of unpaid orders, and of stock moves that are
	// not applied.
	Held int64
}

// Phase returns the phase at a moment. It is over as soon as no unit can reach anybody, and running
// again if the merchant adds units.
func (r Room) Phase(now time.Time) waitingroom.Phase {
	switch {
	case now.Before(r.StartAt):
		return waitingroom.PhaseOpen
	case !now.Before(r.EndAt), r.Available <= 0 && r.Held <= 0 && r.Pending <= 0:
		return waitingroom.PhaseOver
	}
	return waitingroom.PhaseRunning
}

// Advance returns how many further positions may be admitted now. It is the least of three bounds:
// the permits of the rate, the admissions that the stock covers, and the positions that nobody has
// called.
func (r Room) Advance(now time.Time) (admit int64) {
	if r.Phase(now) != waitingroom.PhaseRunning {
		return 0
	}
	return max(0, min(r.permits(now), r.covered()-r.Outstanding, r.Joined-r.Admitted))
}

// Admit returns the room after n admissions at a moment.
func (r Room) Admit(now time.Time, n int64) Room {
	r.Room = r.Room.Admit(now, n)
	r.Outstanding += n
	return r
}

// covered returns how many admissions may be outstanding. One more is allowed while
// outstanding × limit < available. So the others take fewer than all units, and the last to act
// still finds one. A purchase takes at most the limit and ends an admission, which keeps the rule.
// With fewer units than the limit, admissions follow one by one.
func (r Room) covered() int64 {
	limit := max(1, r.PerBuyerLimit)
	return (max(0, r.Available) + limit - 1) / limit
}

// permits returns the admissions that the rate allows. The small summand makes up for the rounding
// of products such as 0.1 s × 10/s.
func (r Room) permits(now time.Time) int64 {
	paid := r.Room.Admit(now, 0).Paid
	return int64(now.Sub(paid).Seconds()*r.PermitsPerSecond + 1e-9)
}
