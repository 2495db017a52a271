package ratelimit

import (
	"slices"
	"sort"
)

// logEngine is a sliding log: exact in every window, at the price of
// remembering each admission of the last interval (a group of n is one entry).
type logEngine struct {
	terms   Terms
	entries []logged
	count   int64
}

type logged struct{ at, n int64 }

func newLogEngine(t Terms) *logEngine { return &logEngine{terms: t} }

func (e *logEngine) set(t Terms, _ int64) { e.terms = t }

// forget drops what is a whole interval old: at its very end a permit is free.
func (e *logEngine) forget(now int64) {
	gone := sort.Search(len(e.entries), func(i int) bool { return e.entries[i].at > now-e.terms.Cost })
	for _, entry := range e.entries[:gone] {
		e.count -= entry.n
	}
	e.entries = append(e.entries[:0], e.entries[gone:]...)
}

// step keeps the log in order when the clock steps back.
func (e *logEngine) step(now int64) int64 {
	if len(e.entries) == 0 {
		return now
	}
	newest := e.entries[len(e.entries)-1].at
	if newest-now > backStep {
		for i := range e.entries {
			e.entries[i].at -= newest - now
		}
		return now
	}
	return max(now, newest)
}

func (e *logEngine) decide(now int64, a ask) Decision {
	now = e.step(now)
	e.forget(now)
	if a.n > e.terms.Free-e.count {
		d := e.described(now)
		d.Never = a.n > e.terms.Free
		if !d.Never {
			d.RetryAfter = micros(e.retry(now, a.n))
		}
		return d
	}
	e.count += a.n
	if last := len(e.entries) - 1; last >= 0 && e.entries[last].at == now {
		e.entries[last].n += a.n
	} else {
		e.entries = append(e.entries, logged{now, a.n})
	}
	d := e.described(now)
	d.Allowed, d.Granted = true, a.n
	return d
}

func (e *logEngine) retry(now, n int64) int64 {
	over := e.count + n - e.terms.Free
	for _, entry := range e.entries {
		if over -= entry.n; over <= 0 {
			return entry.at + e.terms.Cost - now
		}
	}
	return e.terms.Cost
}

func (e *logEngine) described(now int64) Decision {
	now = e.step(now)
	e.forget(now)
	d := Decision{Remaining: max(0, e.terms.Free-e.count)}
	if len(e.entries) > 0 {
		d.ResetAfter = micros(e.entries[len(e.entries)-1].at + e.terms.Cost - now)
	}
	return d
}

func (e *logEngine) refund(_, booked, n int64) {
	for i := range e.entries {
		if e.entries[i].at == booked {
			back := min(n, e.entries[i].n)
			e.entries[i].n -= back
			e.count -= back
			return
		}
	}
}

func (e *logEngine) clone() engine {
	c := *e
	c.entries = slices.Clone(e.entries)
	return &c
}
