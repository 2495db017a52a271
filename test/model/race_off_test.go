//go:build !race

package model

// fewer divides the number of schedules. The race detector makes each step some twenty times
// slower, and one thread has no races.
const fewer = 1
