package salechange

import (
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// IdempotencyKey makes a request that may be repeated change something once: the same key and body by the same actor get the
// first answer, the same key with another body a Conflict. The zero value is a request without a key.
type IdempotencyKey struct {
	ActorID int64
	Key     string // 1 to 255 printable ASCII characters; "" for none
	Hash    string // SHA-256 of the request, in hex
}

// IdempotencyTTL is how long a key is remembered.
const IdempotencyTTL = 24 * time.Hour

// NewIdempotencyConflict refuses a key that came with another body before.
func NewIdempotencyConflict() error {
	return seckill.NewError(seckill.Conflict, "this Idempotency-Key came with another request before")
}
