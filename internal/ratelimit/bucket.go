package ratelimit

import (
	"math"
	"time"
)

// backStep is how many µs a clock must step back to count as another clock (after a failover or a
// reset). A smaller step is a correction; the state then stays ahead until the clock has caught up.
// Only one clock decides, Redis' or this process's, and neither is corrected by more at once.
const backStep = int64(100_000)

// maxSwing is how many µs a clock may go ahead and back without creating permits each time. A clock
// that was further ahead is not expected there again soon.
const maxSwing = int64(60_000_000)

// bucketState is the whole state of a bucket: GCRA's theoretical arrival time (TAT), tat + r/scale
// µs since the epoch. At that time all admitted permits are paid for. A clock that reads less than
// writtenAt has stepped back. scale, cost and free are those of the params that wrote the state.
// taken and share are ticks at writtenAt. They are the level as changes of the params leave it alone,
// see convert. seen is the latest time that the clock had before it stepped back, or less than
// writtenAt.
type bucketState struct{ tat, r, scale, writtenAt, cost, free, taken, share, seen int64 }

// level is how far the TAT is ahead of the clock: d + r/scale µs, d ≥ 0.
type level struct{ d, r, taken, share int64 }

// changed reports whether other params wrote the state.
func (s bucketState) changed(t *Params) bool {
	return s != (bucketState{}) && (s.cost != t.Cost || s.scale != t.Scale || s.free != t.Free)
}

func (s bucketState) reanchor(t *Params, now int64) bucketState {
	shift := s.shift(now)
	if s.writtenAt-now > backStep {
		s.seen = max(s.seen, s.writtenAt)
	}
	s.tat, s.writtenAt = s.tat+shift, s.writtenAt+shift
	changed := s.changed(t)
	if shift == 0 && !changed {
		return s
	}
	at := s.level(t, now)
	if changed {
		at = s.convert(t, at)
	}
	return t.bucketOf(at, now, s.seen)
}

// shift is by how many µs the state moves with a clock that has stepped. After a step back it is as
// far ahead of the clock as before. Until the clock has passed the latest time seen, a step forward
// may be the same clock again, which has paid for that time: the state then drains by a tenth of a
// second or one permit only.
func (s bucketState) shift(now int64) int64 {
	switch {
	case s.writtenAt-now > backStep:
		return now - s.writtenAt
	case s.seen > s.writtenAt:
		return max(0, min(now, s.seen)-s.writtenAt-max(backStep, ceilDiv(s.cost, s.scale)))
	}
	return 0
}

// convert expresses a level of other params in those of t. Two things stay as they are, so that
// changes back and forth cancel each other: the number of permits taken and, where the rate changes,
// their share of the burst. The level is the larger of both. So no change refills, and a drained bucket stays drained.
// But the number counts up to free only: a smaller limit does not deny until all permits of a larger
// one have drained. The level above free is waits that callers were promised. These keep their time.
func (s bucketState) convert(t *Params, at level) level {
	if t.Kind == KindBursty { // Guava keeps the time
		r := scaled(at.r, t.Scale, s.scale)
		return t.levelOf(at.d+r/t.Scale, r%t.Scale)
	}
	wait := at.over(s.free, s.scale)
	stays := min(MaxTicks, product(wait, t.Scale))
	waiting := min(MaxTicks, product(wait, s.scale))
	if wait > 0 { // it is rounded up, and no part of a permit taken may count as a wait
		waiting -= (s.free - at.r%s.scale + s.scale) % s.scale
	}
	taken, share := max(0, at.taken-waiting), max(0, at.share-waiting)
	taken = min(MaxTicks, sum(product(taken/s.cost, t.Cost), scaled(taken%s.cost, t.Cost, s.cost)))
	if s.cost != t.Cost || s.scale != t.Scale {
		share = scaled(min(s.free, share), t.Free, s.free)
	}
	ticks := min(t.Free, max(share, taken))
	return level{
		ticks/t.Scale + wait, ticks % t.Scale, min(MaxTicks, taken+stays),
		min(MaxTicks, share+stays),
	}
}

// levelOf is a level without a trace of other params.
func (t *Params) levelOf(d, r int64) level {
	ticks := min(MaxTicks, sum(product(d, t.Scale), r))
	return level{d, r, ticks, ticks}
}

// over is how many µs the level is above free ticks, rounded up.
func (at level) over(free, scale int64) int64 {
	over := at.d - free/scale
	if at.r > free%scale {
		over++
	}
	return max(0, over)
}

// scaled is n × to / from for n ≤ from, rounded up in the doubles that Lua has.
func scaled(n, to, from int64) int64 {
	return int64(math.Ceil(float64(n) / float64(max(1, from)) * float64(to)))
}

// bucketOf is the state of a level. A full bucket has none, because Redis stores none. A
// bucket of Guava's has one, because a new one of these is not full, and one whose clock repeats a
// time.
func (t *Params) bucketOf(at level, now, seen int64) bucketState {
	if seen <= now || seen-now > maxSwing {
		seen = 0
	}
	if at.d == 0 && at.r == 0 && at.taken == 0 && seen == 0 && t.Kind == KindBucket {
		return bucketState{}
	}
	return bucketState{now + at.d, at.r, t.Scale, now, t.Cost, t.Free, at.taken, at.share, seen}
}

// level reads the state at the time now. A missing state is a full bucket, except for
// Guava's, which starts without stored permits.
func (s bucketState) level(t *Params, now int64) level {
	if s == (bucketState{}) {
		if t.Kind == KindBursty {
			return t.levelOf(t.Free/t.Scale, t.Free%t.Scale)
		}
		return level{}
	}
	// The clock may be corrected by less than backStep. Then the level is higher than when written.
	passed := product(max(0, now-s.writtenAt), s.scale) -
		product(max(0, s.writtenAt-now), s.scale)
	at := level{
		taken: max(0, min(MaxTicks, s.taken-passed)), share: max(0, min(MaxTicks, s.share-passed)),
	}
	if s.tat >= now {
		at.d, at.r = s.tat-now, s.r
	}
	return at
}

// drainedAt is when no permit is taken any more.
func (s bucketState) drainedAt() int64 {
	if s.scale == 0 {
		return 0
	}
	return max(s.seen, s.writtenAt+ceilDiv(s.taken, s.scale))
}

// capFor is the highest level for a caller that waits at most maxWait µs.
func (t *Params) capFor(maxWait int64) int64 {
	if maxWait >= ceilDiv(t.Cap-t.Free, t.Scale) {
		return t.Cap
	}
	return t.Free + maxWait*t.Scale
}

// LargestRequest is the most permits that one request of a bucket gets if it waits maxWait at most.
// Guava charges the next caller.
func (t *Params) LargestRequest(maxWait time.Duration) int64 {
	return t.largestFor(max(0, maxWait.Microseconds()))
}

func (t *Params) largestFor(wait int64) int64 {
	if t.Kind == KindBursty {
		return t.MaxPermits
	}
	return t.capFor(wait) / t.Cost
}

// decide compares d with (limit − r − n·Cost)/Scale instead of multiplying the level, so that the
// doubles of Lua are exact too.
func (s bucketState) decide(t *Params, now int64, a ask) (bucketState, Decision) {
	at, most, least := s.level(t, now), t.capFor(a.wait), a.least
	fits, largest := at.fitting(t, most), t.largestFor(a.wait)
	if t.Kind == KindBursty {
		fits = 0
		if at.retry(t, 0, most) <= 0 {
			fits = largest
		}
	}
	granted := min(a.n, fits)
	if granted < least {
		return s, at.status(t).denied(least > largest, at.retry(t, least, most))
	}
	after := at.charge(t, granted)
	d := after.status(t).allowed(granted)
	d.Wait = micros(max(0, at.retry(t, granted, t.Free)))
	return t.bucketOf(after, now, s.seen), d
}

// refund subtracts n permits from the level, but not those that have drained. While callers wait it
// returns only the last permits. Later ones stand on those before them: their callers wait for
// moments that follow, so other permits at these moments would exceed the rate. Permits that were
// taken under other params do not come back.
func (s bucketState) refund(t *Params, now, fullAt, n int64) bucketState {
	if s == (bucketState{}) || s.changed(t) {
		return s
	}
	s = s.reanchor(t, now)
	at := s.level(t, now)
	ticks := min(product(n, t.Cost), at.refundable(t, fullAt-now))
	at.d, at.r = at.d-ticks/t.Scale, at.r-ticks%t.Scale
	if at.r < 0 {
		at.d, at.r = at.d-1, at.r+t.Scale
	}
	if at.d < 0 {
		at.d, at.r = 0, 0
	}
	at.taken, at.share = max(0, at.taken-ticks), max(0, at.share-ticks)
	return t.bucketOf(at, now, s.seen)
}

// refundable is how many ticks of permits come back after which the bucket is full in ahead µs. The
// last permits come back whole. Others come back while nobody waits, as far as their time has not
// passed. Marks are rounded up by less than 2 µs.
func (at level) refundable(t *Params, ahead int64) int64 {
	if at.over(0, t.Scale) <= ahead {
		return MaxTicks
	}
	if at.over(t.Free, t.Scale) > 0 {
		return 0
	}
	if t.Scale > 1 {
		ahead -= 2
	}
	return product(max(0, ahead), t.Scale)
}

// retry is how many µs pass until the level has room for n permits below most ticks; ≤ 0 is now.
// Guava decides by the level before the request, so n does not count.
func (at level) retry(t *Params, n, most int64) int64 {
	if t.Kind == KindBursty {
		n = 0
	}
	return at.d + ceilDiv(at.r+n*t.Cost-most, t.Scale)
}

// fitting is how many permits fit below most ticks.
func (at level) fitting(t *Params, most int64) int64 {
	if at.d > most/t.Scale {
		return 0
	}
	return max(0, most-at.d*t.Scale-at.r) / t.Cost
}

// charge adds the ticks of n permits to the level.
func (at level) charge(t *Params, n int64) level {
	ticks := at.r + n*t.Cost
	return level{
		at.d + ticks/t.Scale, ticks % t.Scale, min(MaxTicks, at.taken+n*t.Cost),
		min(MaxTicks, at.share+n*t.Cost),
	}
}

// status returns the permits available without a wait, and the time until the bucket is full.
func (at level) status(t *Params) Decision {
	return Decision{
		Remaining: at.fitting(t, t.Free), ResetAfter: micros(at.over(0, t.Scale)),
	}
}
