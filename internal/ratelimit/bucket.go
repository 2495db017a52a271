package ratelimit

import "time"

// backStep is how many µs a clock must step back to count as another clock (after a
// failover or a reset). A smaller step is a correction that time catches up with.
const backStep = int64(2_000_000)

// bucketState is the whole state of a bucket: GCRA's theoretical arrival time (TAT),
// tat + r/scale µs since the epoch. At that time all admitted permits are paid for. A
// clock that reads less than writtenAt has stepped back.
type bucketState struct{ tat, r, scale, writtenAt int64 }

// request is a Request to one limiter; maxWait is in µs.
type request struct {
	n, min  int64 // take n, or as many as fit but not fewer than min
	maxWait int64
}

// level is how far the TAT is ahead of the clock: d + r/scale µs, d ≥ 0.
type level struct{ d, r int64 }

// reanchor moves the state to another clock, as far ahead of it as before. Store the
// result even when the request is denied: else the bucket would not drain until the
// new clock reaches the old one.
func (t Params) reanchor(s *bucketState, now int64) *bucketState {
	if s == nil || s.writtenAt-now <= backStep {
		return s
	}
	moved := t.level(&bucketState{tat: s.tat - (s.writtenAt - now), r: s.r, scale: s.scale, writtenAt: now}, now)
	if moved == (level{}) && t.Kind == KindBucket {
		return nil // full: the same as none
	}
	return t.newBucketState(moved, now)
}

// level reads the state at the time now. A missing state (nil) is a full bucket, except
// for Guava's, which starts without stored permits.
func (t Params) level(s *bucketState, now int64) level {
	if s == nil {
		if t.Kind == KindBursty {
			return level{t.Free / t.Scale, t.Free % t.Scale}
		}
		return level{}
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

// decideBucket decides one request and returns the level after it. It never multiplies
// the level but compares d with (limit − r − n·Cost)/Scale, so that the doubles of
// Lua are exact too.
func (t Params) decideBucket(at level, a request) (level, Decision) {
	most := t.capFor(a.maxWait)
	never := a.n > t.MaxPermits
	if t.Kind == KindBucket {
		never = a.n > most/t.Cost
	}
	granted := a.n
	if never || t.retry(at, a.n, most) > 0 {
		granted = t.fitting(at, most)
		if granted < a.min || a.min == a.n {
			return at, t.denied(at, a.n, most, never)
		}
	}
	after := t.charge(at, granted)
	wait := at.d + ceilDiv(at.r+t.judgedTicks(granted)-t.Free, t.Scale)
	d := t.bucketStatus(after)
	d.Allowed, d.Granted, d.Wait = true, granted, micros(max(0, wait))
	return after, d
}

// judgedTicks is what a request adds to the level that decides it. Guava decides by the
// level before the request.
func (t Params) judgedTicks(n int64) int64 {
	if t.Kind == KindBursty {
		return 0
	}
	return n * t.Cost
}

// retry is how many µs pass until there is room for n permits; ≤ 0 is now.
func (t Params) retry(at level, n, most int64) int64 {
	return at.d + ceilDiv(at.r+t.judgedTicks(n)-most, t.Scale)
}

// fitting is how many permits there is room for.
func (t Params) fitting(at level, most int64) int64 {
	if at.d > most/t.Scale {
		return 0
	}
	return max(0, most-at.d*t.Scale-at.r) / t.Cost
}

func (t Params) charge(at level, n int64) level {
	ticks := at.r + n*t.Cost
	return level{at.d + ticks/t.Scale, ticks % t.Scale}
}

func (t Params) denied(at level, n, most int64, never bool) Decision {
	d := t.bucketStatus(at)
	d.Never = never
	if !never {
		d.RetryAfter = micros(t.retry(at, n, most))
	}
	return d
}

func (t Params) bucketStatus(at level) Decision {
	reset := at.d
	if at.r > 0 {
		reset++
	}
	return Decision{Remaining: t.fitting(at, t.Free), ResetAfter: micros(reset)}
}

// refundBucket takes n permits off the level, but not those that have drained.
func (t Params) refundBucket(at level, n int64) level {
	ticks := n * t.Cost
	d, r := at.d-ticks/t.Scale, at.r-ticks%t.Scale
	if r < 0 {
		d, r = d-1, r+t.Scale
	}
	if d < 0 {
		return level{}
	}
	return level{d, r}
}

func (t Params) newBucketState(at level, now int64) *bucketState {
	return &bucketState{tat: now + at.d, r: at.r, scale: t.Scale, writtenAt: now}
}

func unixMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }
