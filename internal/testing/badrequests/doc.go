// Package badrequests lists the mistakes that a client can make: malformed requests over all calls.
// Each has the reason and the field of the expected response. test/e2e sends the table to running
// servers.
//
// Cases returns the table for a fixture. Check sends one case to a base URL and reports every error
// in the response. No case may change any state, so tests compare the ledger before and after the
// table.
//
// Only tests may import this package. It imports seckill, auth, apicheck, and paymentprovider for
// the signatures of payments.
package badrequests
