// Package seen holds what operators see against an installation that works: every metric that docs/reference/metrics.md names is
// there, every query of the dashboards has data, every alert is well formed, fires in its drill and clears, and a trace
// follows a purchase from the API to the commit.
package seen
