// Package auth signs and verifies the tokens of the contract: JWTs (RFC 7519) under HS256 alone, with an expiry.
//
// What it promises: an actor that Verify returns was signed for with our secret, has not expired, has an id > 0, a
// role of the contract, and a name and a phone number that are safe to keep and to print. Everything else is one
// refusal, UNAUTHENTICATED, which never says what the token held.
//
// Verified tokens are remembered, by their SHA-256, until they expire and within bounds, for a rush asks with the
// same tokens again and again. Tokens cannot be taken back before they expire: make them short-lived.
//
// It also seals the phone numbers that tokens bring (Phones), so that whatever keeps an order keeps them unread.
//
// Safe for concurrent use. It imports seckill and golang-jwt.
package auth
