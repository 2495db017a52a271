// Package verdict holds what buyers were told in a load against what the API says afterwards: each promise against its
// buyer's own list of orders, all of them against the merchant's list, and the sums against the ledger.
//
// It believes none of the places by itself. A buyer whose call had no certain end may have an order without having been
// told: that is found, counted, and no difference.
package verdict
