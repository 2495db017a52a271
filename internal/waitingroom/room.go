package waitingroom

import (
	"math"
	"time"
)

// Phase is what a waiting room is at a moment.
type Phase string

// The phases of a waiting room.
const (
	PhaseOpen    Phase = "open"    // before the start: buyers join, nobody is admitted
	PhaseRunning Phase = "running" // admissions follow the rate and the stock
	PhaseOver    Phase = "over"    // nothing is left and nothing can return, or the sale has ended
)

// burst bounds the permits that accumulate while nobody is admitted, as in a sale without a room.
const burst = time.Second

// Room is what decides about the next admissions, all of one moment.
type Room struct {
	StartAt, EndAt   time.Time // admissions happen in [StartAt, EndAt)
	PermitsPerSecond float64   // the sale's rate, above 0
	PerBuyerLimit    int64     // most units of one admission, at least 1
	Joined           int64     // numbers handed out; positions 1 to Joined exist
	Admitted         int64     // the watermark: positions up to it have been called
	// Outstanding counts the admissions that can still buy: neither used, nor left, nor lapsed. An
	// admission permits one purchase.
	Outstanding int64
	Available   int64 // units on sale
	Pending     int64 // units that are reserved and not yet in an order
	// Held are units that can return before EndAt: of unpaid orders, and of stock moves that are not
	// applied. They are elsewhere than the available units, so a unit on its way back can be missed:
	// read them before and after, and use the higher count.
	Held int64
	Paid time.Time // the permits of the time before it are used or lost; zero at first
}

// Phase returns the phase at a moment. It is over as soon as no unit can reach anybody, and running
// again if the merchant adds units.
func (r Room) Phase(now time.Time) Phase {
	switch {
	case now.Before(r.StartAt):
		return PhaseOpen
	case !now.Before(r.EndAt), r.Available <= 0 && r.Held <= 0 && r.Pending <= 0:
		return PhaseOver
	}
	return PhaseRunning
}

// Advance returns how many further positions may be admitted now. It is the least of three bounds:
// the permits of the rate, the admissions that the stock covers, and the positions that nobody has
// called. scripts/lua/admit.lua decides in production; a test holds the script against Advance.
func Advance(r Room, now time.Time) (admit int64) {
	if r.Phase(now) != PhaseRunning {
		return 0
	}
	return max(0, min(r.permits(now), r.covered()-r.Outstanding, r.Joined-r.Admitted))
}

// Admit returns the room after n admissions at a moment. It is to be called for 0 too: it is what
// makes the line move on after the clock was set back.
func (r Room) Admit(now time.Time, n int64) Room {
	r.Admitted += n
	r.Outstanding += n
	r.Paid = r.paid(now).Add(r.timeFor(n))
	return r
}

// Ahead returns how many positions are called before a position.
func (r Room) Ahead(position int64) int64 { return max(0, position-r.Admitted-1) }

// ETA returns the time until a position is called if the rate alone decides: 0 if it was called.
// The stock can make it longer.
func (r Room) ETA(position int64) time.Duration {
	if position <= r.Admitted {
		return 0
	}
	return r.timeFor(r.Ahead(position) + 1)
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
	return int64(now.Sub(r.paid(now)).Seconds()*r.PermitsPerSecond + 1e-9)
}

// paid returns Paid within bounds: not in the future, because a clock that was set back must not
// stop the line, and not so early that more than a burst accumulates.
func (r Room) paid(now time.Time) time.Time {
	earliest := now.Add(-max(burst, r.timeFor(1)))
	switch {
	case r.Paid.After(now):
		return now
	case r.Paid.Before(earliest):
		return earliest
	}
	return r.Paid
}

// longest bounds the times that a very low rate needs.
const longest = float64(math.MaxInt64 / 4)

// timeFor returns the time in which n permits accumulate, rounded up so that the rate is not
// exceeded.
func (r Room) timeFor(n int64) time.Duration {
	seconds := float64(n) / r.PermitsPerSecond
	return time.Duration(min(math.Ceil(seconds*float64(time.Second)), longest))
}
