package ratelimit

import "time"

// backStep is how far a clock must fall back to be taken for another clock (a
// failover, a reset) instead of a correction that is soon caught up with.
const backStep = int64(2_000_000)

// moment is the whole state of a bucket: the time at which all that was
// admitted is paid for, x + r/scale µs since the epoch. wrote is when it was
// last changed: a clock that now reads less has stepped back.
type moment struct{ x, r, scale, wrote int64 }

// ask is one question to a limiter, in microseconds.
type ask struct {
	n, least int64 // book n, or as many as fit but not fewer than least
	maxWait  int64
}

// level is how far a bucket is ahead of the clock: d + r/scale µs, d ≥ 0.
type level struct{ d, r int64 }

// reanchor finds that the clock is another one and moves the state to it, as
// far ahead as it was. The result must be kept, also when the ask is denied, or
// the bucket would never drain on the new clock.
func (t Terms) reanchor(s *moment, now int64) *moment {
	if s == nil || s.wrote-now <= backStep {
		return s
	}
	moved := t.level(&moment{x: s.x - (s.wrote - now), r: s.r, scale: s.scale, wrote: now}, now)
	if moved == (level{}) && t.Kind == KindBucket {
		return nil // full: the same as none
	}
	return t.moment(moved, now)
}

// level reads the state (nil when there is none) at the time now. A missing
// bucket is full, save Guava's, which starts with nothing piled up.
func (t Terms) level(s *moment, now int64) level {
	if s == nil {
		if t.Kind == KindBursty {
			return level{t.Free / t.Scale, t.Free % t.Scale}
		}
		return level{}
	}
	x, r := s.x, s.r
	if s.scale != t.Scale && r > 0 { // the rate has changed: less than 1 µs is lost
		x, r = x+1, 0
	}
	if x < now {
		return level{}
	}
	return level{x - now, r}
}

// capFor is what may be booked by an ask that waits at most maxWait µs.
func (t Terms) capFor(maxWait int64) int64 {
	if maxWait >= ceilDiv(t.Cap-t.Free, t.Scale) {
		return t.Cap
	}
	return t.Free + maxWait*t.Scale
}

// askBucket judges one ask and gives the level after it. The arithmetic, for
// which Lua's doubles are exact too, never multiplies the level: it compares
// d with (limit − r − n·cost)/scale.
func (t Terms) askBucket(at level, a ask) (level, Decision) {
	most := t.capFor(a.maxWait)
	never := a.n > t.Most
	if t.Kind == KindBucket {
		never = a.n > most/t.Cost
	}
	granted := a.n
	if never || t.retry(at, a.n, most) > 0 {
		granted = t.fitting(at, most)
		if granted < a.least || a.least == a.n {
			return at, t.refused(at, a.n, most, never)
		}
	}
	after := t.charge(at, granted)
	wait := at.d + ceilDiv(at.r+t.judged(granted)-t.Free, t.Scale)
	d := t.described(after)
	d.Allowed, d.Granted, d.Wait = true, granted, micros(max(0, wait))
	return after, d
}

// judged is what an ask adds to the level that it is judged by: Guava's callers
// are judged by the level that they find.
func (t Terms) judged(n int64) int64 {
	if t.Kind == KindBursty {
		return 0
	}
	return n * t.Cost
}

// retry is how many µs must pass until the level leaves room; ≤ 0 is none.
func (t Terms) retry(at level, n, most int64) int64 {
	return at.d + ceilDiv(at.r+t.judged(n)-most, t.Scale)
}

// fitting is how many permits there is room for.
func (t Terms) fitting(at level, most int64) int64 {
	if at.d > most/t.Scale {
		return 0
	}
	return max(0, most-at.d*t.Scale-at.r) / t.Cost
}

func (t Terms) charge(at level, n int64) level {
	ticks := at.r + n*t.Cost
	return level{at.d + ticks/t.Scale, ticks % t.Scale}
}

func (t Terms) refused(at level, n, most int64, never bool) Decision {
	d := t.described(at)
	d.Never = never
	if !never {
		d.RetryAfter = micros(t.retry(at, n, most))
	}
	return d
}

func (t Terms) described(at level) Decision {
	reset := at.d
	if at.r > 0 {
		reset++
	}
	return Decision{Remaining: t.fitting(at, t.Free), ResetAfter: micros(reset)}
}

// giveBack takes n permits off the level; what has drained already is gone.
func (t Terms) giveBack(at level, n int64) level {
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

func (t Terms) moment(at level, now int64) *moment {
	return &moment{x: now + at.d, r: at.r, scale: t.Scale, wrote: now}
}

func unixMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }
