package httpapi

import (
	"context"
	"sync/atomic"
	"time"
)

// warn logs each message at most once per second, because each call of a rush may cause one. The
// record has the number of those that it left out. Messages have throttles of their own: strangers
// can cause some of them at will, which must not hide the others.
func (a *api) warn(ctx context.Context, message string, args ...any) {
	own, _ := a.throttles.LoadOrStore(message, new(throttle))
	if suppressed, ok := own.(*throttle).allow(time.Now()); ok {
		a.Log.WarnContext(ctx, message, append(args, "not_logged", suppressed)...)
	}
}

// throttle allows one event per second and counts the others. It is safe for concurrent use.
type throttle struct {
	last       atomic.Int64 // Unix second of the last event
	suppressed atomic.Int64
}

// allow reports whether an event is allowed, and how many were suppressed since the last one.
func (t *throttle) allow(now time.Time) (suppressed int64, ok bool) {
	second, last := now.Unix(), t.last.Load()
	if second == last || !t.last.CompareAndSwap(last, second) { // the clock may be set back
		t.suppressed.Add(1)
		return 0, false
	}
	return t.suppressed.Swap(0), true
}
