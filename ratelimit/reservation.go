package ratelimit

import (
	"context"
	"net/http"
	"time"

	"flashsale.dev/seckill/internal/ratelimit/gate"
)

// Reservation is the answer of Limiter.Reserve. One goroutine may use it.
type Reservation struct {
	Decision
	result   gate.Result
	goodAt   time.Time // zero if the permits are good at once
	returned bool
}

// Wait returns when the permits are good. On an error it gives them back. Errors are the context's,
// and ErrLimited if the reservation was denied or cancelled, or if too many callers wait.
func (r *Reservation) Wait(ctx context.Context) error {
	if r.returned {
		return ErrLimited
	}
	if !r.goodAt.IsZero() {
		r.result.Decision.Wait = time.Until(r.goodAt)
	}
	err := r.result.Wait(ctx)
	if err != nil {
		r.returned = true // gate.Result.Wait has returned the permits
		r.Decision = decisionOf(r.result.Decision)
		r.Allowed = false
	}
	return err
}

// Cancel gives the permits back, except those that have drained meanwhile or that later callers
// build on. It does nothing for a denied or cancelled reservation.
func (r *Reservation) Cancel() {
	if r.returned {
		return
	}
	r.returned = true
	r.result.Refund()
}

// AddHeaders adds an item to each of the headers RateLimit and RateLimit-Policy of a response
// (draft-ietf-httpapi-ratelimit-headers-11). Each limiter of a request adds its own. RateLimit has
// none for a request that FailOpen admitted, because nothing has counted its permits.
func (r *Reservation) AddHeaders(header http.Header) {
	limit, policy := r.result.AppendHeaders(nil, nil)
	if len(limit) > 0 {
		header.Add("RateLimit", string(limit))
	}
	header.Add("RateLimit-Policy", string(policy))
}
