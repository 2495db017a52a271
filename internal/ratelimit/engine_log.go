package ratelimit

import (
	"slices"
	"sort"
)

// logEngine is a sliding log: exact in every window, but it records each admission of
// the last interval (n permits are one entry).
//
// Sub-windows are a log whose times are rounded up to the end of a part of the interval, so that it
// has one entry for each part, like LeapArray of Alibaba Sentinel. No window exceeds the limit, and
// a permit returns up to one part late.
type logEngine struct {
	params  Params
	entries []logged
	count   int64
	newest  int64 // the latest time seen
}

type logged struct{ at, n int64 }

func (e *logEngine) set(t Params, _ int64) { e.params = t }

// entryAt is the time under which permits of the time now are recorded.
func (e *logEngine) entryAt(now int64) int64 {
	if e.params.limit.Algorithm == SubWindows {
		part := e.params.Cost / e.params.Scale
		return now - now%part + part
	}
	return now
}

// expire drops entries that are an interval old. A permit becomes free exactly at the end of the
// interval.
func (e *logEngine) expire(now int64) {
	gone := sort.Search(len(e.entries),
		func(i int) bool { return e.entries[i].at > now-e.params.Cost })
	for _, entry := range e.entries[:gone] {
		e.count -= entry.n
	}
	e.entries = slices.Delete(e.entries, 0, gone)
}

// step keeps the log in order when the clock steps back.
func (e *logEngine) step(now int64) int64 {
	if back := e.newest - now; back > backStep {
		for i := range e.entries {
			e.entries[i].at -= back
		}
		e.newest = now
	}
	e.newest = max(now, e.newest)
	return e.newest
}

func (e *logEngine) decide(now int64, a Request) Decision {
	now = e.step(now)
	e.expire(now)
	if a.N > e.params.Free-e.count {
		return e.status(now).denied(a.N > e.params.Free, e.retry(now, a.N))
	}
	e.count += a.N
	at, last := e.entryAt(now), len(e.entries)-1
	if last >= 0 && e.entries[last].at >= at { // later if the parts or the clock have changed
		e.entries[last].n += a.N
	} else {
		e.entries = append(e.entries, logged{at, a.N})
	}
	return e.status(now).allowed(a.N)
}

func (e *logEngine) retry(now, n int64) int64 {
	over := e.count + n - e.params.Free
	for _, entry := range e.entries {
		if over -= entry.n; over <= 0 {
			return entry.at + e.params.Cost - now
		}
	}
	return e.params.Cost
}

func (e *logEngine) status(now int64) Decision {
	now = e.step(now)
	e.expire(now)
	d := Decision{Remaining: max(0, e.params.Free-e.count)}
	if len(e.entries) > 0 {
		d.ResetAfter = micros(e.entries[len(e.entries)-1].at + e.params.Cost - now)
	}
	return d
}

func (e *logEngine) refund(_, booked, n int64) {
	for i := range e.entries {
		if e.entries[i].at == e.entryAt(booked) {
			back := min(n, e.entries[i].n)
			e.entries[i].n -= back
			e.count -= back
			return
		}
	}
}
