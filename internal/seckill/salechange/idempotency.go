package salechange

import (
	"errors"
	"time"

	"flashsale.dev/seckill/internal/apierror"
)

// IdempotencyKey makes a repeated request take effect once. The same key and body of the same actor
// get the first answer. The same key with another body is a Conflict with the cause ErrKeyReused.
// The zero value is no key.
type IdempotencyKey struct {
	ActorID string
	Key     string // 1 to 255 printable ASCII characters; "" for none
	Hash    string // SHA-256 of the request, in hex
}

// IdempotencyTTL is how long a key is kept.
const IdempotencyTTL = 24 * time.Hour

// ErrKeyReused is the cause of the refusal of a key that came with another body before.
var ErrKeyReused = errors.New("reused idempotency key")

// NewIdempotencyConflict returns the refusal with that cause.
func NewIdempotencyConflict() error {
	e := apierror.New(apierror.Conflict, "this Idempotency-Key came with another request before")
	e.Err = ErrKeyReused
	return e
}
