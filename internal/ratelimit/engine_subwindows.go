package ratelimit

// subEngine is a sliding window in parts, like LeapArray of Alibaba Sentinel: a ring of counts,
// each with the start of its part. Writing another start resets a part, under the limiter's lock,
// so no count is lost. The oldest part counts in full. No window therefore exceeds the limit, and a
// permit returns up to one part late.
type subEngine struct {
	params Params
	parts  []part
}

type part struct{ start, count int64 }

func newSubEngine(t Params) *subEngine {
	// One part more than the interval has, because the window cuts two of them.
	return &subEngine{params: t, parts: make([]part, t.Scale+1)}
}

func (e *subEngine) width() int64 { return e.params.Cost / e.params.Scale }

// set keeps the counts if the parts stay the same. Otherwise it puts them all into the
// newest part, so that no permit is granted early.
func (e *subEngine) set(t Params, _ int64) {
	old := e.params
	e.params = t
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

// step moves the state to another clock, and ignores a small step back.
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

// used counts the parts that overlap the interval before now.
func (e *subEngine) used(now int64) int64 {
	total := int64(0)
	for _, p := range e.parts {
		if p.start+e.width() > now-e.params.Cost {
			total += p.count
		}
	}
	return total
}

func (e *subEngine) decide(now int64, a Request) Decision {
	now = e.step(now)
	if a.N > e.params.Free-e.used(now) {
		return e.status(now).denied(a.N > e.params.Free, e.retry(now, a.N))
	}
	start := now - now%e.width()
	p := e.at(start)
	if p.start != start {
		*p = part{start: start}
	}
	p.count += a.N
	return e.status(now).allowed(a.N)
}

// retry adds up the parts from the oldest, until enough permits have expired.
func (e *subEngine) retry(now, n int64) int64 {
	over := e.used(now) + n - e.params.Free
	oldest := now - now%e.width() - e.params.Cost
	for start := oldest; ; start += e.width() {
		if p := e.at(start); p.start == start {
			over -= p.count
		}
		if over <= 0 || start > now {
			return start + e.width() + e.params.Cost - now
		}
	}
}

func (e *subEngine) status(now int64) Decision {
	now = e.step(now)
	d := Decision{Remaining: max(0, e.params.Free-e.used(now))}
	for _, p := range e.parts {
		if end := p.start + e.width() + e.params.Cost - now; p.count > 0 && end > 0 {
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
