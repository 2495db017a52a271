// Package catalog reads sales for buyers: one sale, the public list, and the random path that
// permits a purchase.
//
// Concurrent reads of one sale share one call to Redis. In a rush the Catalog answers from a view
// that is at most 50 ms old. Refusing a million buyers then costs Redis almost nothing. Redis
// itself decides each reservation.
package catalog
