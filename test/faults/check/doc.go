// Package check judges a sale after a fault. Its functions are pure: they take what was recorded
// from outside (the answers to buyers, MySQL's rows, Redis' ledger, the queues), and list each
// guarantee that does not hold, with the order or the buyer for which it does not.
//
// It imports nothing of the service, so that it cannot share a mistake with it.
package check
