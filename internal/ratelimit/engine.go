package ratelimit

// engine is an algorithm: pure of clocks and locks. Times are µs.
type engine interface {
	decide(now int64, a request) Decision
	refund(now, booked, n int64)
	// described gives Remaining and ResetAfter; it may forget what is over.
	status(now int64) Decision
	clone() engine
	// set changes the terms at the time now, keeping what was booked.
	set(t Params, now int64)
}

func newEngine(t Params, now int64) engine {
	switch t.limit.Algorithm {
	case FixedWindow:
		return &fixedEngine{terms: t}
	case SlidingWindow:
		return &slidingEngine{terms: t}
	case SubWindows:
		return newSubEngine(t)
	case SlidingLog:
		return newLogEngine(t)
	case SmoothWarmingUp:
		return newWarmEngine(t, now)
	}
	return &bucketEngine{terms: t}
}
