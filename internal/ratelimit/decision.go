package ratelimit

import (
	"errors"
	"time"
)

// ErrPermits says that an ask was for less than one permit. Asking for none or
// for a negative number is refused: it would mint permits.
var ErrPermits = errors.New("ratelimit: permits asked for must be 1 or more")

// Decision is a limiter's answer to one ask. Durations are whole microseconds,
// rounded up: nothing told here is earlier than the exact moment, and it is
// later by less than 1 µs.
type Decision struct {
	// Allowed: the permits are booked. They are good once Wait has passed.
	Allowed bool
	// Never: no wait helps; the ask is larger than the limiter ever books.
	// Implies !Allowed.
	Never bool
	// Granted is how many permits were booked: all that were asked for or,
	// where the ask named a smaller Min, what could be had. 0 when denied.
	Granted int64
	// Wait until the permits are good, in [0, the smaller of the limit's and
	// the ask's longest wait]. 0 when denied.
	Wait time.Duration
	// Remaining permits that would go now without waiting, in [0, burst].
	Remaining int64
	// RetryAfter is the shortest time after which the same ask can be
	// admitted; until then every answer to it is no, save for refunds, changed
	// limits and lost keys. Above 0 when denied and not Never, else 0.
	RetryAfter time.Duration
	// ResetAfter is the time until the limiter is as full as it gets if
	// nobody asks. At least 0.
	ResetAfter time.Duration
	// At is the limiter's own clock at the decision. A refund names it, so
	// that it goes to the window that was charged.
	At time.Time
}

// Ask is one question to one limiter in Redis.
type Ask struct {
	// Key of the limiter, whole, as it stands in Redis. Asks that are decided
	// together must share a hash tag in a cluster: that is the caller's job.
	Key string
	// Terms that hold for this ask. They are no part of the stored state: a
	// change of limits neither refills a bucket nor forgets a debt.
	Terms Terms
	// N permits, at least 1.
	N int64
	// Least permits that will do, for a lease; 0 means N. Only for an ask alone.
	Least int64
	// MaxWait that the caller can bear; what the limit allows if it is less.
	MaxWait time.Duration
}

// CheckGroup reports asks that no limiter can decide: ErrPermits, or none at all,
// or a lease that is asked for together with others.
func CheckGroup(group []Ask) error {
	if len(group) == 0 {
		return errors.New("ratelimit: no limiter to ask")
	}
	for _, a := range group {
		switch {
		case a.N < 1 || a.Least < 0 || a.Least > a.N:
			return ErrPermits
		case a.Least > 0 && a.Least < a.N && len(group) > 1:
			return errors.New("ratelimit: a lease is asked for alone")
		}
	}
	return nil
}

// Strictest joins the decisions of limits that must all agree.
func Strictest(a, b Decision) Decision {
	d := Decision{
		Allowed: a.Allowed && b.Allowed, Never: a.Never || b.Never, Granted: min(a.Granted, b.Granted),
		Wait: max(a.Wait, b.Wait), Remaining: min(a.Remaining, b.Remaining),
		RetryAfter: max(a.RetryAfter, b.RetryAfter), ResetAfter: max(a.ResetAfter, b.ResetAfter),
	}
	if !d.Allowed {
		d.Granted, d.Wait = 0, 0
	}
	if d.Never {
		d.RetryAfter = 0
	}
	return d
}
