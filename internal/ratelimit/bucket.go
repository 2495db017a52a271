package ratelimit

// backStep is how many µs a clock must step back to count as another clock (after a failover or a
// reset). A smaller step is a correction; the state then stays ahead until the clock has caught up.
const backStep = int64(2_000_000)

// bucketState is the whole state of a bucket: GCRA's theoretical arrival time (TAT), tat + r/scale
// µs since the epoch. At that time all admitted permits are paid for. A clock that reads less than
// writtenAt has stepped back.
type bucketState struct{ tat, r, scale, writtenAt int64 }

// level is how far the TAT is ahead of the clock: d + r/scale µs, d ≥ 0.
type level struct{ d, r int64 }

func (s bucketState) reanchor(t Params, now int64) bucketState {
	if s.writtenAt-now <= backStep {
		return s
	}
	moved := bucketState{tat: s.tat - (s.writtenAt - now), r: s.r, scale: s.scale, writtenAt: now}
	return t.bucketOf(moved.level(t, now), now)
}

// bucketOf is the state of a level. A full bucket has none, because Redis stores none. A
// bucket of Guava's has one, because a new one of these is not full.
func (t Params) bucketOf(at level, now int64) bucketState {
	if at == (level{}) && t.Kind == KindBucket {
		return bucketState{}
	}
	return bucketState{tat: now + at.d, r: at.r, scale: t.Scale, writtenAt: now}
}

// level reads the state at the time now. A missing state is a full bucket, except for
// Guava's, which starts without stored permits.
func (s bucketState) level(t Params, now int64) level {
	if s == (bucketState{}) && t.Kind == KindBursty {
		return level{t.Free / t.Scale, t.Free % t.Scale}
	}
	x, r := s.tat, s.r
	if s.scale != t.Scale && r > 0 { // the rate has changed: round up, by less than 1 µs
		x, r = x+1, 0
	}
	if x < now {
		return level{}
	}
	return level{x - now, r}
}

// capFor is the highest level for a caller that waits at most maxWait µs.
func (t Params) capFor(maxWait int64) int64 {
	if maxWait >= ceilDiv(t.Cap-t.Free, t.Scale) {
		return t.Cap
	}
	return t.Free + maxWait*t.Scale
}

// decide compares d with (limit − r − n·Cost)/Scale instead of multiplying the level, so that the
// doubles of Lua are exact too.
func (s bucketState) decide(t Params, now int64, a Request) (bucketState, Decision) {
	at, most := s.level(t, now), t.capFor(a.waitMicros())
	never := a.N > t.MaxPermits
	if t.Kind == KindBucket {
		never = a.N > most/t.Cost
	}
	granted := a.N
	if never || at.retry(t, a.N, most) > 0 {
		granted = at.fitting(t, most)
		if a.Min == 0 || granted < a.Min {
			return s, at.status(t).denied(never, at.retry(t, a.N, most))
		}
	}
	after := at.charge(t, granted)
	d := after.status(t).allowed(granted)
	d.Wait = micros(max(0, at.retry(t, granted, t.Free)))
	return bucketState{tat: now + after.d, r: after.r, scale: t.Scale, writtenAt: now}, d
}

// refund subtracts n permits from the level, but not those that have drained.
func (s bucketState) refund(t Params, now, _, n int64) bucketState {
	if s == (bucketState{}) {
		return s
	}
	at, ticks := s.level(t, now), n*t.Cost
	at.d, at.r = at.d-ticks/t.Scale, at.r-ticks%t.Scale
	if at.r < 0 {
		at.d, at.r = at.d-1, at.r+t.Scale
	}
	if at.d < 0 {
		at = level{}
	}
	return t.bucketOf(at, now)
}

// retry is how many µs pass until the level has room for n permits below most ticks; ≤ 0 is now.
// Guava decides by the level before the request, so n does not count.
func (at level) retry(t Params, n, most int64) int64 {
	if t.Kind == KindBursty {
		n = 0
	}
	return at.d + ceilDiv(at.r+n*t.Cost-most, t.Scale)
}

// fitting is how many permits fit below most ticks.
func (at level) fitting(t Params, most int64) int64 {
	if at.d > most/t.Scale {
		return 0
	}
	return max(0, most-at.d*t.Scale-at.r) / t.Cost
}

// charge adds the ticks of n permits to the level.
func (at level) charge(t Params, n int64) level {
	ticks := at.r + n*t.Cost
	return level{at.d + ticks/t.Scale, ticks % t.Scale}
}

// status returns the permits available without a wait, and the time until the bucket is full.
func (at level) status(t Params) Decision {
	reset := at.d
	if at.r > 0 {
		reset++
	}
	return Decision{Remaining: at.fitting(t, t.Free), ResetAfter: micros(reset)}
}
