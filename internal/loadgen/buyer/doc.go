// Package buyer runs virtual buyers against a running API over HTTP, as real clients would.
//
// A buyer requests a random path, buys with it, obeys Retry-After, and polls its order until the
// order is written. Its Result keeps the answers, so that a test or package verdict can compare
// them with the API's later state. A hostile buyer attacks paths and orders of other buyers.
//
// The package uses only the public contract and no internals of the service. Buyers share no state
// except the HTTP client and the Captured values.
package buyer
