// Package reconcile compares Redis with MySQL and repairs the differences.
//
// The LedgerReader compares by order number, never by totals alone. It cannot read two totals at
// one instant, but it can find one order number in Redis or in MySQL. It compares totals only while
// nothing is in flight.
//
// The Reconciler is the worker. Every 5 s it settles orders that are written and still pending. It
// republishes reservations that remain unwritten, and schedules the release of units that Redis
// holds for failed orders. It reports differing totals and leaves their repair to a rebuild. In
// each epoch, and then every hour, it searches the buyers' holdings for every active order, and has
// the sale rebuilt if one is missing. Every 2 s, or less often where that takes long, it samples
// the state of every live sale for metrics. Several processes may run one.
package reconcile
