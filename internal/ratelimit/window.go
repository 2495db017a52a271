package ratelimit

// fixedState is a window that begins with its first request; start is in µs.
type fixedState struct{ start, count int64 }

// fixedAt is the window at the time now. A new one begins as soon as the old one ends,
// whatever the expiry of the key in Redis.
func (t Params) fixedAt(s *fixedState, now int64) fixedState {
	if s == nil {
		return fixedState{start: now}
	}
	if now-s.start >= t.Cost*1000 {
		return fixedState{start: now}
	}
	return *s
}

// reanchorFixed keeps the count on another clock; see reanchor.
func (t Params) reanchorFixed(s *fixedState, now int64) *fixedState {
	if s == nil || s.start-now <= backStep {
		return s
	}
	return &fixedState{start: now, count: s.count}
}

func (t Params) decideFixed(at fixedState, now int64, a request) (fixedState, Decision) {
	granted := a.n
	if a.n > t.Free-at.count { // no sum with n, which may overflow
		granted = t.Free - at.count
		if granted < a.min || a.min == a.n {
			d := t.fixedStatus(at, now)
			d.Never = a.n > t.Free
			if !d.Never {
				d.RetryAfter = micros(at.start + t.Cost*1000 - now)
			}
			return at, d
		}
	}
	at.count += granted
	d := t.fixedStatus(at, now)
	d.Allowed, d.Granted = true, granted
	return at, d
}

func (t Params) fixedStatus(at fixedState, now int64) Decision {
	d := Decision{Remaining: max(0, t.Free-at.count)}
	if at.count > 0 {
		d.ResetAfter = micros(at.start + t.Cost*1000 - now)
	}
	return d
}

// refundFixed credits the window only if it was the one charged, at the time booked.
func (t Params) refundFixed(at fixedState, booked, n int64) fixedState {
	if booked >= at.start {
		at.count = max(0, at.count-n)
	}
	return at
}

// slidingState counts two adjacent windows that are aligned to the epoch: count of the
// one that began at start, last of the one before. Times are in ms.
type slidingState struct{ start, interval, count, last int64 }

// slidingAt advances the windows to the time now (ms). After a change of the interval
// all permits count for the current window, so that none is granted early. Counts are
// clipped to where count × interval is exact.
func (t Params) slidingAt(s *slidingState, now int64) slidingState {
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
		at = old // the clock was corrected: wait until it catches up
	case old.start+t.Cost == at.start:
		at.last = old.count
	}
	at.count, at.last = min(at.count, MaxTicks/t.Cost), min(at.last, MaxTicks/t.Cost)
	return at
}

// reanchorSliding keeps the counts on another clock; see reanchor.
func (t Params) reanchorSliding(s *slidingState, now int64) *slidingState {
	if s == nil || s.start-now <= backStep/1000 {
		return s
	}
	moved := t.slidingAt(&slidingState{start: now - now%s.interval, interval: s.interval, count: s.count, last: s.last}, now)
	if moved.count == 0 && moved.last == 0 {
		return nil
	}
	return &moved
}

func (t Params) slidingLeft(at slidingState, now int64) int64 {
	return t.Cost - max(0, now-at.start)
}

// slidingIn is the µs from now (µs) until ms after the start of this millisecond, or
// later if the clock is before the window.
func slidingIn(at slidingState, now, ms int64) int64 {
	return 1000*(ms+max(0, at.start-now/1000)) - now%1000
}

// decideSliding admits while last × remaining time + count × interval stays within
// limit × interval, in permit-milliseconds.
func (t Params) decideSliding(at slidingState, now int64, a request) (slidingState, Decision) {
	left := t.slidingLeft(at, now/1000)
	used := at.last*left + at.count*t.Cost
	granted := a.n
	if a.n > t.Free || used+a.n*t.Cost > t.Free*t.Cost {
		granted = max(0, t.Free*t.Cost-used) / t.Cost
		if granted < a.min || a.min == a.n {
			d := t.slidingStatus(at, now)
			d.Never = a.n > t.Free
			if !d.Never {
				d.RetryAfter = micros(slidingIn(at, now, t.slidingRetry(at, left, a.n)))
			}
			return at, d
		}
	}
	at.count += granted
	d := t.slidingStatus(at, now)
	d.Allowed, d.Granted = true, granted
	return at, d
}

// slidingRetry is the ms until n permits fit: in this window while the weight of the
// last one falls, or else in the next window.
func (t Params) slidingRetry(at slidingState, left, n int64) int64 {
	room := (t.Free - at.count - n) * t.Cost
	if room >= 0 {
		return left - room/at.last
	}
	return left + max(0, t.Cost-(t.Free-n)*t.Cost/at.count)
}

func (t Params) slidingStatus(at slidingState, now int64) Decision {
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

func (t Params) refundSliding(at slidingState, booked, n int64) slidingState {
	switch {
	case booked >= at.start:
		at.count = max(0, at.count-n)
	case booked >= at.start-t.Cost:
		at.last = max(0, at.last-n)
	}
	return at
}
