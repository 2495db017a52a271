package ratelimit

import "time"

// engine is an algorithm with the state of one limiter. It has no clock and no lock. Times are µs.
// Each call names the params that apply. Where they differ from those of the call before, the
// permits taken stay taken.
type engine interface {
	decide(t *Params, now int64, a ask) answer
	// refund returns n permits. mark is Params.RefundMark of the decision that took them.
	refund(t *Params, now, mark, n int64)
}

// newEngine returns the engine of a limit that is no bucket.
func newEngine(t *Params, now int64) engine {
	switch t.limit.Value().Algorithm {
	case FixedWindow:
		return &fixedState{}
	case SlidingWindow:
		return &slidingState{}
	case SubWindows, SlidingLog:
		return &logEngine{}
	}
	return newWarmEngine(t, now)
}

// answer is a Decision in µs, without the clock.
type answer struct {
	allowed, never                         bool
	granted, wait, remaining, retry, reset int64
}

// granting completes the status of a limiter that has granted n permits.
func (a answer) granting(n int64) answer {
	a.allowed, a.granted = true, n
	return a
}

// denied completes the status of a limiter that denies. A request above the limiter's maximum gets
// no retry, because no retry can succeed.
func (a answer) denied(never bool, retry int64) answer {
	a.never = never
	if !never {
		a.retry = retry
	}
	return a
}

// write writes the answer as a Decision, field by field, because a copy of all takes longer.
func (a *answer) write(d *Decision, now int64) {
	d.Allowed, d.Never, d.Granted, d.Wait = a.allowed, a.never, a.granted, micros(a.wait)
	d.Remaining, d.RetryAfter, d.ResetAfter = a.remaining, micros(a.retry), micros(a.reset)
	d.At = time.UnixMicro(now).UTC()
}
