// Package report renders the result of a load test: text for people, JSON for programs, and one
// HTML page with charts. docs/how-to/load-test.md explains every figure.
package report
