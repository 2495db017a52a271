// Package reconcile compares Redis with MySQL and repairs the differences.
//
// The LedgerReader compares by order number, never by totals alone: two totals are never read at
// one instant, but one order number is in one place or in the other. It compares totals only
// while nothing is in flight.
//
// The Reconciler is the worker. Every 5 s it settles orders that are written and still pending,
// republishes reservations that stay unwritten, and schedules the release of units that Redis
// holds for failed orders. It reports differing totals and leaves their repair to a rebuild.
// Every 2 s it samples the state of every live sale for metrics. Several processes may run one.
package reconcile
