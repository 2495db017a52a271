package ratelimit

import (
	"math"
	"time"
)

// backStep is how many µs a clock must step back to count as another clock (after a failover or a
// reset). A smaller step is a correction; the state then stays ahead until the clock has caught up.
const backStep = int64(2_000_000)

// bucketState is the whole state of a bucket: GCRA's theoretical arrival time (TAT), tat + r/scale
// µs since the epoch. At that time all admitted permits are paid for. A clock that reads less than
// writtenAt has stepped back. scale, cost and free are those of the params that wrote the state.
type bucketState struct{ tat, r, scale, writtenAt, cost, free int64 }

// level is how far the TAT is ahead of the clock: d + r/scale µs, d ≥ 0.
type level struct{ d, r int64 }

func (s bucketState) reanchor(t Params, now int64) bucketState {
	stepped := s.writtenAt-now > backStep
	changed := s != (bucketState{}) && (s.cost != t.Cost || s.scale != t.Scale)
	if !stepped && !changed {
		return s
	}
	if stepped {
		s.tat -= s.writtenAt - now
	}
	at := s.level(t, now)
	if changed {
		at = s.convert(t, at)
	}
	return t.bucketOf(at, now)
}

// convert expresses a level of other params in those of t. The part up to free is permits taken,
// and the part above it is waits that callers were promised, which stay as they are. The permits
// keep their number if the burst is the same number of permits under both params, and their time if
// it is the same time. If neither is the same, the larger level counts, so that no change refills.
func (s bucketState) convert(t Params, at level) level {
	taken, wait := s.free, int64(0)
	if whole, rest := s.free/s.scale, s.free%s.scale; at.d > whole ||
		at.d == whole && at.r >= rest {
		wait = at.d - whole
		if at.r > rest {
			wait++
		}
	} else {
		taken = at.d*s.scale + at.r
	}
	inTime := min(t.Free, product(ceilDiv(taken, s.scale), t.Scale))
	inPermits := min(t.Free, sum(product(taken/s.cost, t.Cost),
		int64(math.Ceil(float64(taken%s.cost)/float64(s.cost)*float64(t.Cost)))))
	switch {
	case sameRatio(s.free, s.scale, t.Free, t.Scale):
		taken = inTime
	case sameRatio(s.free, s.cost, t.Free, t.Cost):
		taken = inPermits
	default:
		taken = max(inTime, inPermits)
	}
	return level{taken/t.Scale + wait, taken % t.Scale}
}

// sameRatio reports whether a/b is c/d, in the doubles that Lua has.
func sameRatio(a, b, c, d int64) bool { return float64(a)/float64(b) == float64(c)/float64(d) }

// bucketOf is the state of a level. A full bucket has none, because Redis stores none. A
// bucket of Guava's has one, because a new one of these is not full.
func (t Params) bucketOf(at level, now int64) bucketState {
	if at == (level{}) && t.Kind == KindBucket {
		return bucketState{}
	}
	return bucketState{
		tat: now + at.d, r: at.r, scale: t.Scale, writtenAt: now, cost: t.Cost, free: t.Free,
	}
}

// level reads the state at the time now. A missing state is a full bucket, except for
// Guava's, which starts without stored permits.
func (s bucketState) level(t Params, now int64) level {
	if s == (bucketState{}) && t.Kind == KindBursty {
		return level{t.Free / t.Scale, t.Free % t.Scale}
	}
	if s.tat < now {
		return level{}
	}
	return level{s.tat - now, s.r}
}

// capFor is the highest level for a caller that waits at most maxWait µs.
func (t Params) capFor(maxWait int64) int64 {
	if maxWait >= ceilDiv(t.Cap-t.Free, t.Scale) {
		return t.Cap
	}
	return t.Free + maxWait*t.Scale
}

// LargestRequest is the most permits that one request of a bucket gets if it waits maxWait at most.
// Guava charges the next caller.
func (t Params) LargestRequest(maxWait time.Duration) int64 {
	if t.Kind == KindBursty {
		return t.MaxPermits
	}
	return t.capFor(max(0, maxWait.Microseconds())) / t.Cost
}

// decide compares d with (limit − r − n·Cost)/Scale instead of multiplying the level, so that the
// doubles of Lua are exact too.
func (s bucketState) decide(t Params, now int64, a Request) (bucketState, Decision) {
	at, most, least := s.level(t, now), t.capFor(a.waitMicros()), a.least()
	fits, largest := at.fitting(t, most), t.LargestRequest(a.MaxWait)
	if t.Kind == KindBursty {
		fits = 0
		if at.retry(t, 0, most) <= 0 {
			fits = largest
		}
	}
	granted := min(a.N, fits)
	if granted < least {
		return s, at.status(t).denied(least > largest, at.retry(t, least, most))
	}
	after := at.charge(t, granted)
	d := after.status(t).allowed(granted)
	d.Wait = micros(max(0, at.retry(t, granted, t.Free)))
	return t.bucketOf(after, now), d
}

// refund subtracts n permits from the level, but not those that have drained. It returns nothing
// once later permits were taken. These stand on the ones before them: their callers wait for
// moments that follow, so other permits at these moments would exceed the rate.
func (s bucketState) refund(t Params, now, fullAt, n int64) bucketState {
	if s == (bucketState{}) {
		return s
	}
	at := s.level(t, now)
	if now+at.status(t).ResetAfter.Microseconds() != fullAt {
		return t.bucketOf(at, now)
	}
	ticks := n * t.Cost
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
