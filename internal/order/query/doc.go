// Package query reads the status of orders and notifies subscribers of changes.
//
// An order that Redis lists as pending is queued. Any other promised order has a row in MySQL, or
// its promise was lost with Redis. In the last case the Service writes a tombstone first and then
// answers "failed, LOST", so that a late writer cannot contradict the answer.
//
// Concurrent queries of one goods share one read of Redis and one statement. A query never joins
// reads that began before it, so a buyer never reads a state older than one that the buyer knows.
//
// The Notifier polls MySQL once for all subscriptions of a node, not once per subscription. All
// types are safe for concurrent use.
package query
