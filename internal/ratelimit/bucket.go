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

// bucketState is what Redis stores under a bucket's key. Its methods are the Go form of
// scripts/lua/ratelimit_decide.lua. The zero value is a missing key.
//
// It is GCRA's theoretical arrival time (TAT): the time at which all admitted permits are paid for.
type bucketState struct {
	by        *Params // those that wrote the state, or equal ones; nil in a missing state
	tat, r    int64   // the TAT is tat + r/Scale µs since the epoch
	writtenAt int64   // the clock in µs; one that reads less now has stepped back
	trace     *trace  // nil: that of the level (traceOf)
}

// level is how far the TAT is ahead of the clock: d + r/Scale µs, d ≥ 0, 0 ≤ r < Scale.
type level struct{ d, r int64 }

// trace is what the level does not show after a change of the params or a step of the clock, as of
// writtenAt. taken, beyond and share equal the level as long as neither happens.
type trace struct {
	taken  int64 // ticks of the permits taken, at most MaxTicks
	beyond int64 // whole permits taken that taken has no room for (one of 333.333/s is 1e9 ticks)
	share  int64 // ticks taken of the burst: convert keeps their share of Free
	seen   int64 // latest time in µs before the clock stepped back; below writtenAt without a step
}

// changed reports whether other params wrote the state.
func (s *bucketState) changed(t *Params) bool {
	return s.by != t && s.by != nil &&
		(s.by.Cost != t.Cost || s.by.Scale != t.Scale || s.by.Free != t.Free)
}

// reanchor moves the state to another clock, as far ahead of it as before, and to the params t. The
// result stays even after a denial. Otherwise the limiter would not drain until the new clock
// reaches the old one, or would drain at the old rate.
func (s *bucketState) reanchor(t *Params, now int64) {
	shift, changed := s.shift(now), s.changed(t)
	if shift == 0 && !changed {
		return
	}
	seen := s.seen()
	if s.writtenAt-now > backStep {
		seen = max(seen, s.writtenAt)
	}
	s.tat, s.writtenAt = s.tat+shift, s.writtenAt+shift
	at := s.level(t, now)
	left := s.traceAt(t, at, now)
	if changed {
		at, left = s.convert(t, at, left)
	}
	left.seen = seen
	s.store(t, at, left, now)
}

func (s *bucketState) seen() int64 {
	if s.trace == nil {
		return 0
	}
	return s.trace.seen
}

// shift is by how many µs the state moves with a clock that has stepped. After a step back it is as
// far ahead of the clock as before. Until the clock has passed the latest time seen, a step forward
// may be the same clock again, which has paid for that time: the state then drains by a tenth of a
// second or one permit only.
func (s *bucketState) shift(now int64) int64 {
	switch {
	case s.writtenAt-now > backStep:
		return now - s.writtenAt
	case s.seen() > s.writtenAt:
		return max(0, min(now, s.seen())-s.writtenAt-max(backStep, ceilDiv(s.by.Cost, s.by.Scale)))
	}
	return 0
}

// convert expresses a level of other params in those of t. Two things stay as they are, so that
// changes back and forth cancel each other: the number of permits taken and, where the rate
// changes, their share of the burst. The level is the larger of both. So no change refills, and a
// drained bucket stays drained. But the number counts up to free only: a smaller limit does not
// deny until all permits of a larger one have drained. The level above free is waits that callers
// were promised. These keep their time.
func (s *bucketState) convert(t *Params, at level, left trace) (level, trace) {
	by := s.by
	if t.Kind == KindBursty { // Guava keeps the time
		d, r := t.split(scaled(at.r, t.Scale, by.Scale))
		at = level{at.d + d, r}
		return at, t.traceOf(at)
	}
	wait := at.over(by.Free, by.Scale)
	stays := min(MaxTicks, product(wait, t.Scale))
	waiting := min(MaxTicks, product(wait, by.Scale))
	if wait > 0 { // it is rounded up, and no part of a permit taken may count as a wait
		waiting -= (by.Free - at.r%by.Scale + by.Scale) % by.Scale
	}
	taken, beyond := by.counted(left.taken-waiting, left.beyond)
	taken, share := max(0, taken), max(0, left.share-waiting)
	taken, beyond = t.counted(scaled(taken%by.Cost, t.Cost, by.Cost), beyond+taken/by.Cost)
	if by.Cost != t.Cost || by.Scale != t.Scale {
		share = scaled(min(by.Free, share), t.Free, by.Free)
	}
	most := max(share, taken)
	if beyond > 0 {
		most = t.Free
	}
	d, r := t.split(min(t.Free, most))
	taken, beyond = t.counted(taken+stays, beyond)
	return level{d + wait, r}, trace{
		taken: taken, beyond: beyond,
		share: min(MaxTicks, share+stays),
	}
}

// counted keeps ticks at or below MaxTicks. beyond is the number of permits that do not fit into
// ticks. counted adds as many of them to ticks as fit, and returns both.
func (t *Params) counted(ticks, beyond int64) (int64, int64) {
	if beyond == 0 && ticks <= MaxTicks {
		return ticks, 0
	}
	permits := min(beyond, -ceilDiv(ticks-MaxTicks, t.Cost))
	return ticks + permits*t.Cost, beyond - permits
}

// split divides ticks into µs and a rest. A division is slow, and most scales are 1.
func (t *Params) split(ticks int64) (d, r int64) {
	if t.Scale == 1 {
		return ticks, 0
	}
	return ticks / t.Scale, ticks % t.Scale
}

// traceOf is the trace of a level that t alone has made.
func (t *Params) traceOf(at level) trace {
	ticks := product(at.d, t.Scale) + at.r
	taken, beyond := t.counted(ticks, 0)
	return trace{taken: taken, beyond: beyond, share: min(MaxTicks, ticks)}
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

// store writes a level as the state. A bucket of which nothing is taken becomes the zero state, as
// Redis stores no key for it. Not so one of Guava's, because a new one of these is not full, and
// one whose clock repeats times.
func (s *bucketState) store(t *Params, at level, left trace, now int64) {
	if left.seen <= now || left.seen-now > maxSwing {
		left.seen = 0
	}
	if at == (level{}) && left.taken == 0 && left.seen == 0 && t.Kind == KindBucket {
		*s = bucketState{}
		return
	}
	s.by, s.tat, s.r, s.writtenAt = t, now+at.d, at.r, now
	if left == t.traceOf(at) {
		s.trace = nil
		return
	}
	if s.trace == nil {
		s.trace = new(trace)
	}
	*s.trace = left
}

// level reads the state at the time now. A missing state is a full bucket, except for
// Guava's, which starts without stored permits.
func (s *bucketState) level(t *Params, now int64) (at level) {
	if s.by == nil {
		if t.Kind == KindBursty {
			at.d, at.r = t.split(t.Free)
		}
		return at
	}
	if s.tat >= now {
		at.d, at.r = s.tat-now, s.r
	}
	return at
}

// traceAt is the trace at the time now. at is the level then.
func (s *bucketState) traceAt(t *Params, at level, now int64) trace {
	if s.trace == nil {
		if s.by != nil {
			t = s.by
		}
		return t.traceOf(at)
	}
	left, by, gap := *s.trace, s.by, now-s.writtenAt
	passed := min(MaxTicks, product(gap, by.Scale))
	if gap < 0 { // corrected by less than backStep: the level is higher than when written
		passed = -min(MaxTicks, product(-gap, by.Scale))
	}
	if left.beyond > 0 { // time above MaxTicks ends whole permits; in the doubles that Lua has
		above := float64(float64(gap)*float64(by.Scale)) - float64(MaxTicks)
		permits := math.Floor(above/float64(by.Cost)) - 1
		left.beyond -= int64(max(0, min(float64(left.beyond), permits)))
	}
	left.taken, left.beyond = by.counted(left.taken-passed, left.beyond)
	left.taken = max(0, left.taken)
	left.share = max(0, min(MaxTicks, left.share-passed))
	return left
}

// drainedAt is the time in µs at which no permit is taken any more, or 0 if the level alone decides
// that.
func (s *bucketState) drainedAt() int64 {
	if s.trace == nil {
		return 0
	}
	ticks := float64(s.trace.taken) + float64(s.trace.beyond)*float64(s.by.Cost)
	full := min(float64(MaxTicks), math.Ceil(ticks/float64(s.by.Scale)))
	return max(s.trace.seen, s.writtenAt+int64(full))
}

// capFor is CapFor in µs.
func (t *Params) capFor(maxWait int64) int64 {
	return t.Free + min(t.Cap-t.Free, product(maxWait, t.Scale))
}

// CapFor is the highest level in ticks of a bucket for a caller that waits at most maxWait.
func (t *Params) CapFor(maxWait time.Duration) int64 {
	return t.capFor(max(0, maxWait.Microseconds()))
}

// LargestRequest is the most permits that one request gets if it waits maxWait at most. In windows
// nobody waits, and Guava charges the next caller.
func (t *Params) LargestRequest(maxWait time.Duration) int64 {
	if t.Kind != KindBucket {
		return t.MaxPermits
	}
	return t.CapFor(maxWait) / t.Cost
}

// never reports whether n permits are more than a bucket ever grants below most ticks.
func (t *Params) never(n, most int64) bool {
	if t.Kind == KindBursty {
		return n > t.MaxPermits
	}
	return product(n, t.Cost) > most
}

// decide writes its answer in place. A copy of an answer that was written field by field takes
// longer than the decision.
func (s *bucketState) decide(t *Params, now int64, a ask, d *answer) {
	s.reanchor(t, now)
	at, most := s.level(t, now), t.capFor(a.wait)
	granted := at.fitting(t, most, a.n)
	if t.Kind == KindBursty {
		granted = 0
		if at.retry(t, 0, most) <= 0 {
			granted = min(a.n, t.MaxPermits)
		}
	}
	if granted < a.least {
		at.status(t, d)
		if d.never = t.never(a.least, most); !d.never {
			d.retry = at.retry(t, a.least, most)
		}
		return
	}
	after := at.charge(t, granted)
	if s.trace == nil {
		s.by, s.tat, s.r, s.writtenAt = t, now+after.d, after.r, now
	} else {
		left := s.traceAt(t, at, now)
		left.taken, left.beyond = t.counted(left.taken+granted*t.Cost, left.beyond)
		left.share = min(MaxTicks, left.share+granted*t.Cost)
		s.store(t, after, left, now)
	}
	after.status(t, d)
	d.allowed, d.granted, d.wait = true, granted, max(0, at.retry(t, granted, t.Free))
}

// refund subtracts n permits from the level, but not those that have drained. While callers wait it
// returns only the last permits. Later ones stand on those before them: their callers wait for
// moments that follow, so other permits at these moments would exceed the rate. Permits that were
// taken under other params do not come back.
func (s *bucketState) refund(t *Params, now, fullAt, n int64) {
	if s.by == nil || s.changed(t) {
		return
	}
	s.reanchor(t, now)
	at := s.level(t, now)
	left := s.traceAt(t, at, now)
	ticks := min(product(n, t.Cost), at.refundable(t, fullAt-now))
	d, r := t.split(ticks)
	at.d, at.r = at.d-d, at.r-r
	if at.r < 0 {
		at.d, at.r = at.d-1, at.r+t.Scale
	}
	if at.d < 0 {
		at.d, at.r = 0, 0
	}
	left.taken, left.beyond = t.counted(left.taken-ticks, left.beyond)
	left.taken, left.share = max(0, left.taken), max(0, left.share-ticks)
	s.store(t, at, left, now)
}

// refundable is how many ticks a refund may return at most. ahead is the time in µs until the
// moment at which the bucket was to be full after the refunded decision, its mark. If no later
// permits were taken, the bucket is not full later than that, and all ticks come back. Otherwise
// they come back while nobody waits, as far as their time has not passed. A mark may be rounded up
// by almost 2 µs.
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

// fitting is how many of n permits fit below most ticks.
func (at level) fitting(t *Params, most, n int64) int64 {
	room := max(0, most-product(at.d, t.Scale)-at.r)
	switch { // most calls need no division, which takes as long as the rest
	case room < t.Cost:
		return 0
	case product(n, t.Cost) <= room:
		return n
	}
	return room / t.Cost
}

// charge adds the ticks of n permits to the level.
func (at level) charge(t *Params, n int64) level {
	d, r := t.split(at.r + n*t.Cost)
	return level{at.d + d, r}
}

// status writes the permits available without a wait, and the time until the bucket is full.
func (at level) status(t *Params, a *answer) {
	a.remaining, a.reset = at.fitting(t, t.Free, MaxTicks), at.d
	if at.r > 0 {
		a.reset++
	}
}
