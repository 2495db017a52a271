//go:build !race

package model

// fewer divides the number of schedules: the race detector makes each step some twenty times
// slower, and finds nothing in one thread.
const fewer = 1
