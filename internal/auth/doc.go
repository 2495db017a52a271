// Package auth signs and verifies the tokens of the contract: JWTs (RFC 7519) with HS256 and an
// expiry.
//
// A token that Verify accepts was signed with our secret and has not expired. Its actor has an id
// above 0, a known role, and a name and a phone number that are printable and bounded. Every other
// token is refused with UNAUTHENTICATED, and the refusal repeats no part of the token.
//
// Verified tokens are cached by their SHA-256 until they expire, because a rush repeats the same
// tokens. A token cannot be revoked before it expires, so tokens should be short-lived.
//
// Phones encrypts the phone numbers of tokens before an order stores them.
package auth
