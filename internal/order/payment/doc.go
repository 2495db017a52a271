// Package payment pays, cancels, expires and refunds orders.
//
// The Service changes an order for its buyer or for a payment provider. The Expirer ends unpaid
// orders after the payment timeout. The Refunder returns money that an order could not keep. Each
// change is one MySQL transaction, which also writes the stock move that returns the units. A crash
// therefore neither loses units nor returns them twice.
//
// Concurrent payments of one goods share a transaction, because a commit to disk costs more than
// their statements. Concurrent cancellations share one, because each of them must lock the goods
// row.
package payment
