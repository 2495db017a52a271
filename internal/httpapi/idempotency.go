package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"flashsale.dev/seckill/internal/seckill/salechange"
)

const (
	idempotencyHeader = "Idempotency-Key"
	maxIdempotencyKey = 255
)

// idempotency returns the request's key (draft-ietf-httpapi-idempotency-key-header), with or
// without the quotes of a structured field. The hash covers the call and its fields, so that the
// service detects a key that is reused for another request.
func (r *request) idempotency(call string) salechange.IdempotencyKey {
	values := r.header[idempotencyHeader]
	if len(values) == 0 {
		return salechange.IdempotencyKey{}
	}
	key := values[0]
	if len(key) >= 2 && key[0] == '"' && key[len(key)-1] == '"' {
		key = key[1 : len(key)-1]
	}
	unprintable := func(c rune) bool { return c < ' ' || c > '~' }
	if len(values) > 1 || key == "" || len(key) > maxIdempotencyKey ||
		strings.ContainsFunc(key, unprintable) {
		r.Reject(idempotencyHeader,
			"must be one key of 1 to %d printable ASCII characters", maxIdempotencyKey)
	}
	return salechange.IdempotencyKey{ActorID: r.actor.ID, Key: key, Hash: r.fingerprint(call)}
}

// fingerprint hashes the fields in their canonical order, so that a client may repeat a request
// with its fields in another place or order.
func (r *request) fingerprint(call string) string {
	sum := sha256.Sum256([]byte(call + "\n" + strings.Join(r.Canonical(), "\n")))
	return hex.EncodeToString(sum[:])
}
