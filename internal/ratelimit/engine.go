package ratelimit

// engine is an algorithm with the state of one limiter. It has no clock and no lock.
// Times are µs.
type engine interface {
	decide(now int64, a ask) Decision
	// refund returns n permits. mark is Params.RefundMark of the decision that took them.
	refund(now, mark, n int64)
	// set changes the params at the time now and keeps the permits taken.
	set(t *Params, now int64)
}

// newEngine returns the engine of a limit that is no bucket.
func newEngine(t *Params, now int64) engine {
	switch t.limit.Value().Algorithm {
	case FixedWindow:
		return &stateEngine[fixedState]{params: t}
	case SlidingWindow:
		return &stateEngine[slidingState]{params: t}
	case SubWindows, SlidingLog:
		return &logEngine{params: t}
	}
	return newWarmEngine(*t, now)
}

// state is what Redis stores under a limiter's key; its zero value is a missing key. Its methods
// are the Go form of scripts/lua/ratelimit_decide.lua.
type state[S any] interface {
	// reanchor moves the state to another clock, as far ahead of it as before, and to other params.
	// The result is stored even after a denial. Otherwise the limiter would not drain until the new
	// clock reaches the old one, or would drain at the old rate.
	reanchor(t *Params, now int64) S
	// decide returns the state to store; a denial changes nothing.
	decide(t *Params, now int64, a ask) (S, Decision)
	refund(t *Params, now, mark, n int64) S
}

// stateEngine holds in memory the same state as Redis.
type stateEngine[S state[S]] struct {
	params *Params
	state  S
}

func (e *stateEngine[S]) set(t *Params, _ int64) { e.params = t }

func (e *stateEngine[S]) decide(now int64, a ask) (d Decision) {
	e.state, d = e.state.reanchor(e.params, now).decide(e.params, now, a)
	return d
}

func (e *stateEngine[S]) refund(now, mark, n int64) {
	e.state = e.state.refund(e.params, now, mark, n)
}

// allowed completes the status of a limiter that has granted n permits.
func (d Decision) allowed(n int64) Decision {
	d.Allowed, d.Granted = true, n
	return d
}

// denied completes the status of a limiter that denies. A request above the limiter's maximum gets
// no RetryAfter, because no retry can succeed.
func (d Decision) denied(never bool, retry int64) Decision {
	d.Never = never
	if !never {
		d.RetryAfter = micros(retry)
	}
	return d
}
