// Package verdict compares the answers that virtual buyers received with the API's later state.
// It checks each 202 against its buyer's list of orders, all lists against the merchant's list, and
// the sums against the ledger.
//
// The verdict trusts no single source. A buyer whose call ended without an answer may have an order
// without a 202. The verdict counts such an order as found, not as a difference.
//
// The package states the ledger's equation itself. It judges the product from outside, so it must
// not share the product's code.
package verdict
