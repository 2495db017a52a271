//go:build !race

package model

// The race detector makes each step some twenty times slower, and there is nothing for it to find in one thread.
const fewer = 1
