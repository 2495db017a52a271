package ratelimit

// engine is an algorithm with the state of one limiter. It has no clock and no lock.
// Times are µs.
type engine interface {
	decide(now int64, a request) Decision
	refund(now, booked, n int64)
	// status fills Remaining and ResetAfter, and may drop expired state.
	status(now int64) Decision
	clone() engine
	// set changes the params at the time now and keeps the permits taken.
	set(t Params, now int64)
}

func newEngine(t Params, now int64) engine {
	switch t.limit.Algorithm {
	case FixedWindow:
		return &fixedEngine{params: t}
	case SlidingWindow:
		return &slidingEngine{params: t}
	case SubWindows:
		return newSubEngine(t)
	case SlidingLog:
		return newLogEngine(t)
	case SmoothWarmingUp:
		return newWarmEngine(t, now)
	}
	return &bucketEngine{params: t}
}
