// Package apikey makes, verifies and revokes the keys with which merchants' back ends call the API.
//
// A key is the text sk_<id>_<secret>. Only its maker sees it, once. The store has the SHA-256 of
// the secret: 256 random bits can't be guessed, so a slow hash would add cost and no protection.
// A key acts as its merchant within its scopes, and never as a buyer or an operator.
//
// The Verifier caches keys for less than a second, so a revocation works on every node within that
// time. Concurrent look-ups share one statement, and unknown ids are cached too, so callers with
// invented keys cost each node one statement at a time.
package apikey
