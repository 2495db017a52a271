// Package salechange defines a merchant's change of a sale: its fields and bounds, the rule that
// applies it to a draft or an exposed sale, the idempotency key that makes a repeated request
// change something once, and the entry of the audit log.
//
// The package knows neither SQL nor Redis nor HTTP.
package salechange
