// Package tour runs docs/tutorial/tour.md: every line that begins with "$ " is given to one bash, in order, with a real curl and a
// standalone of the test's own behind it, and what it prints must be what stands below it. "…" stands for anything on a line.
package tour
