package rig

import "testing"

// Neighbours gives consecutive buyer ids from the first on.
func Neighbours(t testing.TB, _ string, _ int, first int64) func(i int) int64 {
	t.Helper()
	return func(i int) int64 { return first + int64(i) }
}
