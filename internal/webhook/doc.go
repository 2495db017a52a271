// Package webhook sends events to merchants' programs: signed by Standard Webhooks
// (https://www.standardwebhooks.com), in batches, in order, at least once.
//
// One dispatcher at a time serves an endpoint, by a lease, and sends one delivery after the other.
// So the events of an order and of a sale arrive in order. The dispatcher repeats a failed delivery
// with growing pauses for a day. Then the delivery is dead, and the next one follows. Owners can
// list dead deliveries and have them sent again.
//
// Each endpoint has a goroutine of its own while it is served, and every attempt ends after five
// seconds. Endpoints whose last attempt failed never have all goroutines. A slow or dead receiver
// therefore delays no other. Requests go to public addresses only, because the address comes from a
// merchant: see Allow.
package webhook
