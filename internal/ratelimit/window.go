package ratelimit

// The states of windows are what Redis stores under a limiter's key; a zero value is a missing key.
// Their methods are the Go form of scripts/lua/ratelimit_decide.lua.

// fixedState is a window that begins with its first request; start is in µs.
type fixedState struct{ start, count int64 }

// reanchor moves the window to another clock. The result stays even after a denial. Otherwise the
// window would not end until the new clock reaches the old one.
func (s *fixedState) reanchor(now int64) {
	if s.start-now > backStep {
		s.start = now
	}
}

// at is the window at the time now. A new one begins as soon as the old one ends, independent of
// the key's expiry in Redis.
func (s fixedState) at(t *Params, now int64) fixedState {
	if now-s.start >= t.Cost*1000 {
		return fixedState{start: now}
	}
	return s
}

func (s *fixedState) decide(t *Params, now int64, a ask) answer {
	s.reanchor(now)
	at, least := s.at(t, now), a.least
	granted := min(a.n, t.Free-at.count)
	if granted < least {
		return at.status(t, now).denied(least > t.Free, at.start+t.Cost*1000-now)
	}
	at.count += granted
	*s = at
	return at.status(t, now).granting(granted)
}

func (s fixedState) status(t *Params, now int64) answer {
	a := answer{remaining: max(0, t.Free-s.count)}
	if s.count > 0 {
		a.reset = s.start + t.Cost*1000 - now
	}
	return a
}

// refund credits the window only if it was the one charged, at the time booked. A clock that was
// set back since may be in an earlier window.
func (s *fixedState) refund(t *Params, now, booked, n int64) {
	s.reanchor(now)
	at := s.at(t, now)
	if since := booked - at.start; since >= 0 && since < t.Cost*1000 {
		at.count -= n
	}
	if at.count <= 0 {
		at = fixedState{}
	}
	*s = at
}

// slidingState counts two adjacent windows that are aligned to the epoch. count belongs to the one
// that began at start, and last to the one before. Times are in ms, because the weight of the last
// window multiplies a time with a count. The methods take µs, as all do.
type slidingState struct{ start, interval, count, last int64 }

// at advances the windows to the time now. After a change of the interval all permits count for the
// current window, so that none is granted early. Counts are clipped to the range in which count ×
// interval is exact.
func (s slidingState) at(t *Params, now int64) slidingState {
	now /= 1000
	at := slidingState{start: now - now%t.Cost, interval: t.Cost}
	old := s
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

// stored is the state to keep: without a count it is the same as a missing one.
func (s slidingState) stored() slidingState {
	if s.count == 0 && s.last == 0 {
		return slidingState{}
	}
	return s
}

func (s *slidingState) reanchor(t *Params, now int64) {
	ms := now / 1000
	if s.start-ms <= backStep/1000 {
		return
	}
	s.start = ms - ms%s.interval
	*s = s.at(t, now).stored()
}

// left is how many ms of the current window remain at the time now.
func (s slidingState) left(t *Params, now int64) int64 { return t.Cost - max(0, now/1000-s.start) }

// used is the weight of both windows, in permit-milliseconds.
func (s slidingState) used(t *Params, now int64) int64 {
	return s.last*s.left(t, now) + s.count*t.Cost
}

// in is the µs from now until ms after the start of this millisecond, or later if the
// clock is before the window.
func (s slidingState) in(now, ms int64) int64 {
	return 1000*(ms+max(0, s.start-now/1000)) - now%1000
}

// decide admits while last × remaining time + count × interval stays within
// limit × interval, in permit-milliseconds.
func (s *slidingState) decide(t *Params, now int64, a ask) answer {
	s.reanchor(t, now)
	at, least := s.at(t, now), a.least
	granted := min(a.n, max(0, t.Free*t.Cost-at.used(t, now))/t.Cost)
	if granted < least {
		if least > t.Free {
			return at.status(t, now).denied(true, 0)
		}
		return at.status(t, now).denied(false, at.in(now, at.retry(t, now, least)))
	}
	at.count += granted
	*s = at
	return at.status(t, now).granting(granted)
}

// retry is the ms until n permits fit: in this window while the weight of the last one
// falls, or else in the next window.
func (s slidingState) retry(t *Params, now, n int64) int64 {
	left, room := s.left(t, now), (t.Free-s.count-n)*t.Cost
	if room >= 0 {
		return left - room/s.last
	}
	return left + t.Cost - (t.Free-n)*t.Cost/s.count
}

func (s slidingState) status(t *Params, now int64) answer {
	left := s.left(t, now)
	a := answer{remaining: max(0, t.Free*t.Cost-s.used(t, now)) / t.Cost}
	switch {
	case s.count > 0:
		a.reset = s.in(now, left+t.Cost)
	case s.last > 0:
		a.reset = s.in(now, left)
	}
	return a
}

// refund credits the window that was charged, at the time booked, if it still counts.
func (s *slidingState) refund(t *Params, now, booked, n int64) {
	s.reanchor(t, now)
	at := s.at(t, now)
	switch since := booked/1000 - at.start; {
	case since >= 0 && since < t.Cost:
		at.count = max(0, at.count-n)
	case since < 0 && since >= -t.Cost:
		at.last = max(0, at.last-n)
	}
	*s = at.stored()
}
