// Package buyers runs many identical buyers for tests and stores each result. Package loadgen
// instead measures latencies and stores only the data for a verdict.
package buyers
