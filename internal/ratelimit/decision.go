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
