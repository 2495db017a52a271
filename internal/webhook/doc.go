// Package webhook sends events to merchants' programs: signed by Standard Webhooks
// (https://www.standardwebhooks.com), in batches, in order, at least once.
//
// An endpoint is served by one worker at a time, which holds its lease, and one delivery after the
// other. So the events of an order and of a sale arrive in order. A delivery that fails is repeated
// with growing pauses for a day; then it is dead, and the next one follows. A dead delivery is
// listed, and sent again on demand.
//
// Each endpoint has a goroutine of its own while it is served, and every attempt ends after five
// seconds. A slow or dead receiver therefore delays no other. Requests go to public addresses only,
// because the address comes from a merchant: see Allow.
package webhook
