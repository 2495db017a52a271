package ratelimit

import (
	"slices"
	"sort"
)

// logEngine is a sliding log: exact in every window, but it records each admission of
// the last interval (n permits are one entry).
//
// Sub-windows are a log whose times are rounded up to the end of a part of the interval. It has one
// entry for each part, like LeapArray of Alibaba Sentinel. No window exceeds the limit, and a
// permit returns up to one part late.
type logEngine struct {
	entries []logged
	count   int64
	newest  int64 // when the entries were last changed
}

type logged struct{ at, n int64 }

// entryAt is the time under which permits of the time now are recorded.
func entryAt(t *Params, now int64) int64 {
	if t.limit.Value().Algorithm == SubWindows {
		part := t.Cost / t.Scale
		return now - now%part + part
	}
	return now
}

// logView is what counts of a log at the time now: the entries from index first, and their permits.
type logView struct {
	now, count int64
	first      int
}

// view leaves out entries that are an interval old: a permit becomes free exactly at the end of the
// interval. It keeps them in the log, because a denial changes nothing.
func (e *logEngine) view(t *Params, now int64) logView {
	v := logView{now: e.step(now), count: e.count}
	v.first = sort.Search(len(e.entries),
		func(i int) bool { return e.entries[i].at > v.now-t.Cost })
	for _, entry := range e.entries[:v.first] {
		v.count -= entry.n
	}
	return v
}

// step keeps the log in order when the clock steps back.
func (e *logEngine) step(now int64) int64 {
	if len(e.entries) == 0 {
		return now
	}
	if back := e.newest - now; back > backStep {
		for i := range e.entries {
			e.entries[i].at -= back
		}
		e.newest = now
	}
	return max(now, e.newest)
}

func (e *logEngine) decide(t *Params, now int64, a ask) answer {
	v, least := e.view(t, now), a.least
	granted := min(a.n, t.Free-v.count)
	if granted < least {
		return e.status(t, v).denied(least > t.Free, e.retry(t, v, least))
	}
	e.entries = slices.Delete(e.entries, 0, v.first)
	e.newest, e.count, v.first, v.count = v.now, v.count+granted, 0, v.count+granted
	at, last := entryAt(t, v.now), len(e.entries)-1
	if last >= 0 && e.entries[last].at >= at { // later if the parts or the clock have changed
		e.entries[last].n += granted
	} else {
		e.entries = append(e.entries, logged{at, granted})
	}
	return e.status(t, v).granting(granted)
}

// retry is the time until enough entries are an interval old for n permits.
func (e *logEngine) retry(t *Params, v logView, n int64) int64 {
	over := v.count + n - t.Free
	for _, entry := range e.entries[v.first:] {
		if over -= entry.n; over <= 0 {
			return entry.at + t.Cost - v.now
		}
	}
	return t.Cost
}

func (e *logEngine) status(t *Params, v logView) answer {
	a := answer{remaining: max(0, t.Free-v.count)}
	if last := len(e.entries) - 1; last >= v.first {
		a.reset = e.entries[last].at + t.Cost - v.now
	}
	return a
}

func (e *logEngine) refund(t *Params, now, booked, n int64) {
	v := e.view(t, now)
	e.entries, e.count = slices.Delete(e.entries, 0, v.first), v.count
	booked = entryAt(t, booked)
	i := slices.IndexFunc(e.entries, func(l logged) bool { return l.at == booked })
	if i < 0 {
		return
	}
	back := min(n, e.entries[i].n)
	e.entries[i].n -= back
	e.count -= back
	if e.entries[i].n == 0 {
		e.entries = slices.Delete(e.entries, i, i+1)
	}
}
