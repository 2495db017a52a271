package salechange

import (
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// IdempotencyKey makes a repeated request take effect once. The same key and body of the same actor
// get the first answer. The same key with another body is a Conflict. The zero value is no key.
type IdempotencyKey struct {
	ActorID int64
	Key     string // 1 to 255 printable ASCII characters; "" for none
	Hash    string // SHA-256 of the request, in hex
}

// IdempotencyTTL is how long a key is kept.
const IdempotencyTTL = 24 * time.Hour

// NewIdempotencyConflict returns the refusal of a key that was used with another body before.
func NewIdempotencyConflict() error {
	return seckill.NewError(seckill.Conflict,
		"this Idempotency-Key came with another request before")
}
