package ratelimit

import "slices"

// subEngine is a sliding window in parts, after Sentinel's LeapArray: a ring of
// counts, each with the start of the part it is for. A part is reset by being
// written with another start, under the limiter's lock, so no count is lost and
// nothing spins. The part that the window's edge cuts is counted whole: no
// window ever sees more than the limit, and a permit comes back up to one part
// late.
type subEngine struct {
	terms Terms
	parts []part
}

type part struct{ start, count int64 }

func newSubEngine(t Terms) *subEngine {
	// One more than the interval has: the part that runs and those it may cut.
	return &subEngine{terms: t, parts: make([]part, t.Scale+1)}
}

func (e *subEngine) width() int64 { return e.terms.Cost / e.terms.Scale }

// set keeps the counts while the parts are the same; otherwise all that still
// counts goes into the newest part, which is late and never early.
func (e *subEngine) set(t Terms, _ int64) {
	old := e.terms
	e.terms = t
	if old.Cost == t.Cost && old.Scale == t.Scale {
		return
	}
	var kept part
	for _, p := range e.parts {
		kept.start = max(kept.start, p.start)
	}
	for _, p := range e.parts {
		if p.start > kept.start-old.Cost {
			kept.count += p.count
		}
	}
	e.parts = make([]part, t.Scale+1)
	kept.start -= kept.start % e.width()
	*e.at(kept.start) = kept
}

func (e *subEngine) at(start int64) *part {
	return &e.parts[start/e.width()%int64(len(e.parts))]
}

// step re-anchors after a clock that stepped back, and waits out a small step.
func (e *subEngine) step(now int64) int64 {
	newest := int64(0)
	for _, p := range e.parts {
		if p.count > 0 {
			newest = max(newest, p.start)
		}
	}
	if newest-now <= backStep {
		return max(now, newest)
	}
	total := e.used(newest)
	clear(e.parts)
	start := now - now%e.width()
	*e.at(start) = part{start, total}
	return now
}

// used counts every part that reaches into the interval before now.
func (e *subEngine) used(now int64) int64 {
	total := int64(0)
	for _, p := range e.parts {
		if p.start+e.width() > now-e.terms.Cost {
			total += p.count
		}
	}
	return total
}

func (e *subEngine) decide(now int64, a ask) Decision {
	now = e.step(now)
	if a.n > e.terms.Free-e.used(now) {
		d := e.described(now)
		d.Never = a.n > e.terms.Free
		if !d.Never {
			d.RetryAfter = micros(e.retry(now, a.n))
		}
		return d
	}
	start := now - now%e.width()
	p := e.at(start)
	if p.start != start {
		*p = part{start: start}
	}
	p.count += a.n
	d := e.described(now)
	d.Allowed, d.Granted = true, a.n
	return d
}

// retry walks the parts from the oldest: n fit when enough have left.
func (e *subEngine) retry(now, n int64) int64 {
	over := e.used(now) + n - e.terms.Free
	oldest := now - now%e.width() - e.terms.Cost
	for start := oldest; ; start += e.width() {
		if p := e.at(start); p.start == start {
			over -= p.count
		}
		if over <= 0 || start > now {
			return start + e.width() + e.terms.Cost - now
		}
	}
}

func (e *subEngine) described(now int64) Decision {
	now = e.step(now)
	d := Decision{Remaining: max(0, e.terms.Free-e.used(now))}
	for _, p := range e.parts {
		if end := p.start + e.width() + e.terms.Cost - now; p.count > 0 && end > 0 {
			d.ResetAfter = max(d.ResetAfter, micros(end))
		}
	}
	return d
}

func (e *subEngine) refund(_, booked, n int64) {
	start := booked - booked%e.width()
	if p := e.at(start); p.start == start {
		p.count = max(0, p.count-n)
	}
}

func (e *subEngine) clone() engine {
	c := *e
	c.parts = slices.Clone(e.parts)
	return &c
}
