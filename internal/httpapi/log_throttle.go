package httpapi

import (
	"sync/atomic"
	"time"
)

// throttle lets one event a second through and counts the others.
type throttle struct {
	next       atomic.Int64 // Unix seconds from which on one may pass again
	suppressed atomic.Int64
}

// pass tells whether an event may pass, and how many were held back before it.
func (t *throttle) allow(now time.Time) (held int64, ok bool) {
	second, next := now.Unix(), t.next.Load()
	if second < next || !t.next.CompareAndSwap(next, second+1) {
		t.suppressed.Add(1)
		return 0, false
	}
	return t.suppressed.Swap(0), true
}
