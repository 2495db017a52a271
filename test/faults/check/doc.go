// Package check is the verdict on a sale that something was done to: pure functions over what was recorded from
// outside (what each buyer was told, MySQL's rows, Redis' numbers, the queues), which name every guarantee of the
// design that does not hold, with the order or the buyer it does not hold for.
//
// It imports nothing of the service, so that it cannot share a mistake with it.
package check
