// Package auth signs and verifies the tokens of the contract: JWTs (RFC 7519) with an expiry. They
// are signed with HS256 and one of our secrets, or with RS256, ES256 or EdDSA by an OpenID Connect
// issuer.
//
// A token that Verify accepts was signed by one of them and has not expired. An issuer's also names
// the issuer and the audience. Its actor has an id that userid accepts, a known role, and a name
// and a phone number that are printable and bounded. Every other token is refused with
// UNAUTHENTICATED, and the refusal repeats no part of the token.
//
// Verified tokens are cached by their SHA-256 until they expire, because a rush repeats the same
// tokens. A token cannot be revoked before it expires, so tokens should be short-lived. A change of
// an issuer's keys ends the cached results of its tokens.
//
// Phones encrypts the phone numbers and email addresses of tokens before an order stores them, and
// Addresses and WebhookSecrets encrypt with its keys.
package auth
