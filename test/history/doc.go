// Package history records what concurrent clients ask a running installation and what it answers.
// It has porcupine judge the record against a sequential specification of a sale. Porcupine is a
// linearizability checker that this project did not write: it searches for one order of all
// operations that the specification allows and that agrees with the times of calls and answers.
//
// The clients are eight devices of buyers and a merchant. They call the released programs over HTTP
// while a fault is injected. A client that gets no answer leaves its operation open, because its
// outcome is unknown. docs/explanation/histories.md describes the specification.
package history
