// Package buyers plays many equal buyers for tests and keeps the result of each. Package loadgen
// measures latencies instead and keeps only what a verdict needs.
package buyers
