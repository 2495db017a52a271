// Package reconcile compares Redis with MySQL and repairs the differences.
//
// The Reconciler compares by order number, never by totals alone: two totals are never read at one
// instant, but one order number is in one place or in the other. It settles orders that are
// written and still pending, republishes reservations that stay unwritten, and plans the return of
// units that Redis holds for failed orders. It reports differing totals and leaves their repair to
// a rebuild.
//
// The Sampler reads the state of every live sale for metrics. Several processes may run both.
package reconcile
