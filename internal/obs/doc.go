// Package obs is how a program is watched: structured logs that carry the request's id, and the handler of the
// operations address. Metrics are in obs/prom, so that a program that does without them need not build them.
//
// It imports the standard library alone.
package obs
