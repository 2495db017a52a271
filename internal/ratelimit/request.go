package ratelimit

import (
	"errors"
	"time"
)

// ErrPermits means that a request was for less than one permit. Zero or negative requests would
// create permits.
var ErrPermits = errors.New("ratelimit: permits requested must be 1 or more")

// Decision is a limiter's answer to a request. Durations are whole microseconds,
// rounded up by less than 1 µs.
type Decision struct {
	// Allowed: the permits are taken. They are good once Wait has passed.
	Allowed bool
	// Never: no wait helps, because the request is larger than the limiter ever
	// grants. Implies !Allowed.
	Never bool
	// Granted permits: all that were requested or, if the request has a smaller
	// Min, as many as were available. 0 when denied.
	Granted int64
	// Wait until the permits are good, from 0 to the smaller of the limit's and
	// the request's longest wait. 0 when denied.
	Wait time.Duration
	// Remaining permits that are available without a wait, from 0 to the burst.
	Remaining int64
	// RetryAfter is the shortest time after which the same request can be admitted.
	// Until then each answer is a denial, except after a refund, a changed limit or
	// a lost key. Above 0 when denied and not Never, else 0.
	RetryAfter time.Duration
	// ResetAfter is the time until the limiter is full again without further
	// requests. At least 0.
	ResetAfter time.Duration
	// At is the limiter's clock at the decision. With ResetAfter it identifies the permits to a
	// refund, see Params.RefundMark.
	At time.Time
}

// Request is a request for permits of one limiter of a store.
type Request struct {
	// Key of the limiter, as it is in Redis. In a cluster, the keys of requests
	// that are decided together must share a hash tag.
	Key string
	// Space has the keys of a Memory apart, without a longer string for each request. Redis has
	// none.
	Space string
	// Params that apply to this request. Stores do not keep them: a changed limit
	// neither refills a bucket nor drops its debt.
	Params Params
	// N permits, at least 1.
	N int64
	// Min is how many permits suffice, 1 to N; 0 means N. A denial's Never and RetryAfter are those
	// of Min permits, because callers that share a request need not wait for each other.
	Min int64
	// MaxWait that the caller accepts. The limit's own applies if it is shorter.
	MaxWait time.Duration
}

// Validate returns ErrPermits for a request that no limiter can decide.
func (r *Request) Validate() error {
	if r.N < 1 || r.Min < 0 || r.Min > r.N {
		return ErrPermits
	}
	return nil
}

// ask is the part of a request that an engine decides by: permits, those that suffice, and the
// longest wait in µs. An engine gets it by value, because a pointer would put each request on the
// heap.
type ask struct{ n, least, wait int64 }

func (r *Request) ask() ask {
	a := ask{n: r.N, least: r.Min, wait: max(0, r.MaxWait.Microseconds())}
	if a.least == 0 {
		a.least = r.N
	}
	return a
}
