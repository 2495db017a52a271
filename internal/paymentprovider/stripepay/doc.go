// Package stripepay takes payments on Stripe's Checkout pages.
//
// Each checkout is one Checkout Session. Its idempotency key is the order's number, followed by the
// attempt after the first one. A repeated call therefore returns the same session. Its metadata,
// and that of its payment, name the goods and the order. Stripe's webhooks report payments, refunds
// and disputes.
//
// A Provider is safe for concurrent use. It logs nothing, and no error shows a key.
package stripepay
