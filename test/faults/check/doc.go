// Package check judges a sale after a fault. Its functions are pure. They take records from
// outside: the answers to buyers, MySQL's rows, Redis' ledger and the queues. They list each
// violated guarantee with the order or the buyer.
//
// The package imports nothing of the service but its clients, the buyers, so that the two cannot
// share a mistake.
package check
