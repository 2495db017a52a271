package ratelimit

// fixedState is a window that began with its first request, in µs.
type fixedState struct{ start, count int64 }

// fixedAt is the window at the time now: a new one from the very moment the old
// one ends, whatever the key's own expiry says.
func (t Terms) fixedAt(s *fixedState, now int64) fixedState {
	if s == nil {
		return fixedState{start: now}
	}
	if now-s.start >= t.Cost*1000 {
		return fixedState{start: now}
	}
	return *s
}

// reanchorFixed keeps the count on another clock; see reanchor.
func (t Terms) reanchorFixed(s *fixedState, now int64) *fixedState {
	if s == nil || s.start-now <= backStep {
		return s
	}
	return &fixedState{start: now, count: s.count}
}

func (t Terms) askFixed(at fixedState, now int64, a ask) (fixedState, Decision) {
	granted := a.n
	if a.n > t.Free-at.count { // this way round: n may be anything
		granted = t.Free - at.count
		if granted < a.least || a.least == a.n {
			d := t.fixedDescribed(at, now)
			d.Never = a.n > t.Free
			if !d.Never {
				d.RetryAfter = micros(at.start + t.Cost*1000 - now)
			}
			return at, d
		}
	}
	at.count += granted
	d := t.fixedDescribed(at, now)
	d.Allowed, d.Granted = true, granted
	return at, d
}

func (t Terms) fixedDescribed(at fixedState, now int64) Decision {
	d := Decision{Remaining: max(0, t.Free-at.count)}
	if at.count > 0 {
		d.ResetAfter = micros(at.start + t.Cost*1000 - now)
	}
	return d
}

// giveBackFixed credits only the window that was charged, at the time booked.
func (t Terms) giveBackFixed(at fixedState, booked, n int64) fixedState {
	if booked >= at.start {
		at.count = max(0, at.count-n)
	}
	return at
}

// slidingState is two aligned windows' counts; start and interval in ms.
type slidingState struct{ start, interval, count, last int64 }

// slidingAt moves the windows on to the time now (ms). After a change of the
// interval all that was counted is taken as the running window's: late, never
// early. Counts are clipped to where count × interval is exact.
func (t Terms) slidingAt(s *slidingState, now int64) slidingState {
	at := slidingState{start: now - now%t.Cost, interval: t.Cost}
	if s == nil {
		return at
	}
	old := *s
	if old.interval != t.Cost {
		old = slidingState{start: old.start, interval: t.Cost, count: old.count + old.last}
		if now-old.start < s.interval*2 {
			old.start = at.start
		}
	}
	switch {
	case old.start == at.start:
		at.count, at.last = old.count, old.last
	case old.start > now:
		at = old // the clock was put right: wait for it
	case old.start+t.Cost == at.start:
		at.last = old.count
	}
	at.count, at.last = min(at.count, MaxTicks/t.Cost), min(at.last, MaxTicks/t.Cost)
	return at
}

// reanchorSliding keeps the counts on another clock; see reanchor.
func (t Terms) reanchorSliding(s *slidingState, now int64) *slidingState {
	if s == nil || s.start-now <= backStep/1000 {
		return s
	}
	moved := t.slidingAt(&slidingState{start: now - now%s.interval, interval: s.interval, count: s.count, last: s.last}, now)
	if moved.count == 0 && moved.last == 0 {
		return nil
	}
	return &moved
}

func (t Terms) slidingLeft(at slidingState, now int64) int64 {
	return t.Cost - max(0, now-at.start)
}

// slidingIn is the µs from now (µs) until ms after this millisecond's start,
// and later still where the clock stands before the window.
func slidingIn(at slidingState, now, ms int64) int64 {
	return 1000*(ms+max(0, at.start-now/1000)) - now%1000
}

// askSliding admits while last × (what is left of the window) + count, in
// permit-milliseconds, stays within limit × interval.
func (t Terms) askSliding(at slidingState, now int64, a ask) (slidingState, Decision) {
	left := t.slidingLeft(at, now/1000)
	used := at.last*left + at.count*t.Cost
	granted := a.n
	if a.n > t.Free || used+a.n*t.Cost > t.Free*t.Cost {
		granted = max(0, t.Free*t.Cost-used) / t.Cost
		if granted < a.least || a.least == a.n {
			d := t.slidingDescribed(at, now)
			d.Never = a.n > t.Free
			if !d.Never {
				d.RetryAfter = micros(slidingIn(at, now, t.slidingRetry(at, left, a.n)))
			}
			return at, d
		}
	}
	at.count += granted
	d := t.slidingDescribed(at, now)
	d.Allowed, d.Granted = true, granted
	return at, d
}

// slidingRetry is the ms until n fit: in this window as the last one fades, or
// else in the next as this one does.
func (t Terms) slidingRetry(at slidingState, left, n int64) int64 {
	room := (t.Free - at.count - n) * t.Cost
	if room >= 0 {
		return left - room/at.last
	}
	return left + max(0, t.Cost-(t.Free-n)*t.Cost/at.count)
}

func (t Terms) slidingDescribed(at slidingState, now int64) Decision {
	left := t.slidingLeft(at, now/1000)
	used := at.last*left + at.count*t.Cost
	d := Decision{Remaining: max(0, t.Free*t.Cost-used) / t.Cost}
	switch {
	case at.count > 0:
		d.ResetAfter = micros(slidingIn(at, now, left+t.Cost))
	case at.last > 0:
		d.ResetAfter = micros(slidingIn(at, now, left))
	}
	return d
}

func (t Terms) giveBackSliding(at slidingState, booked, n int64) slidingState {
	switch {
	case booked >= at.start:
		at.count = max(0, at.count-n)
	case booked >= at.start-t.Cost:
		at.last = max(0, at.last-n)
	}
	return at
}
