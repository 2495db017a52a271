// Package report shows what a load measured and what came of the comparison: a table for people, JSON for programs, and
// one HTML page with charts. docs/loadtest.md tells how to read them.
package report
