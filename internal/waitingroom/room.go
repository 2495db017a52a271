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

// leastBurst is the time whose permits accumulate in every room; admit.lua has the reason.
const leastBurst = 200 * time.Millisecond

// Room says when a position is called if the rate alone decides. The stock can make it later.
type Room struct {
	PermitsPerSecond float64       // the sale's rate, above 0
	Burst            time.Duration // the time whose permits accumulate while nobody is admitted
	Admitted         int64         // the watermark: positions up to it have been called
	Paid             time.Time     // permits of the time before it are used or lost; zero at first
}

// Admit returns the room after n admissions at a moment. Call it for 0 too: without the call the
// line does not move on after the clock was set back.
func (r Room) Admit(now time.Time, n int64) Room {
	r.Admitted += n
	r.Paid = r.paid(now).Add(r.timeFor(n))
	return r
}

// Ahead returns how many positions are called before a position.
func (r Room) Ahead(position int64) int64 { return max(0, position-r.Admitted-1) }

// ETA returns the time until a position is called: 0 if it was called.
func (r Room) ETA(position int64) time.Duration {
	if position <= r.Admitted {
		return 0
	}
	return r.timeFor(r.Ahead(position) + 1)
}

// paid returns Paid within bounds. It is not in the future, because a clock that was set back must
// not stop the line. It is not so early that more than a burst accumulates.
func (r Room) paid(now time.Time) time.Time {
	earliest := now.Add(-max(r.Burst, leastBurst, r.timeFor(1)))
	switch {
	case r.Paid.After(now):
		return now
	case r.Paid.Before(earliest):
		return earliest
	}
	return r.Paid
}

// Longest bounds the times that a very low rate needs, so that they can be added up.
const Longest time.Duration = math.MaxInt64 / 4

// timeFor returns the time in which n permits accumulate, rounded up so that the rate is not
// exceeded.
func (r Room) timeFor(n int64) time.Duration {
	seconds := float64(n) / r.PermitsPerSecond
	return time.Duration(min(math.Ceil(seconds*float64(time.Second)), float64(Longest)))
}
