// Package salechange defines a merchant's change of a sale. It has the fields and bounds, and the
// rule that applies a change to a draft or an exposed sale. It also has the idempotency key, with
// which a repeated request changes a sale once, and the entry of the audit log.
//
// The package uses neither SQL nor Redis nor HTTP.
package salechange
