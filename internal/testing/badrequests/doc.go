// Package badrequests is the table of everything a client may get wrong: malformed requests over
// all calls, each with the reason and the field that must answer it. The same table is driven
// through the router with fakes behind it and against running servers.
//
// Cases makes the table for a fixture; Check sends one of them to a base URL and says what is wrong
// with the answer. No case may change anything: whoever drives the table compares the ledger from
// before with the one from after.
//
// For tests alone. It imports seckill and auth.
package badrequests
