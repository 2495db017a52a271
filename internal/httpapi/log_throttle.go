package httpapi

import (
	"sync/atomic"
	"time"
)

// throttle allows one event per second and counts the others. It is safe for concurrent use.
type throttle struct {
	next       atomic.Int64 // Unix second from which the next event is allowed
	suppressed atomic.Int64
}

// allow reports whether an event is allowed, and how many were suppressed since the last one.
func (t *throttle) allow(now time.Time) (suppressed int64, ok bool) {
	second, next := now.Unix(), t.next.Load()
	if second < next || !t.next.CompareAndSwap(next, second+1) {
		t.suppressed.Add(1)
		return 0, false
	}
	return t.suppressed.Swap(0), true
}
