// Package stats counts orders and refusals of sales for their merchants.
//
// Counters collects counts in the memory of a node and adds them to Redis once a second, so that
// counting costs no call. A crash loses at most one second of counts, and no count is added twice.
// Service reads the statistics of one sale: its state in Redis, its orders in MySQL, and the rates
// that all nodes counted.
package stats
