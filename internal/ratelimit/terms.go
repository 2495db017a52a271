package ratelimit

import "time"

type kind string

// The kinds that the script knows; its header lists them.
const (
	kindBucket  kind = "b"
	kindBursty  kind = "g"
	kindFixed   kind = "f"
	kindSliding kind = "w"
	// The kinds that live in process only have no state that Redis could hold.
	kindLocal kind = ""
)

// Terms are a Limit made ready for arithmetic: whole numbers only, checked so
// that no intermediate of the Go or the Lua leaves the exact range of a double.
//
// Buckets count in ticks of 1/scale µs. A permit costs cost ticks, so that a
// rate whose interval is no whole number of microseconds is still exact. Up to
// free ticks go without waiting and up to cap may be booked at all: design.md's
// F and C. Windows keep their interval in ms in cost and their limit in free.
type Terms struct {
	kind                         kind
	cost, scale, free, cap, most int64
	limit                        Limit
}

// Limit gives back what the terms were made of.
func (t Terms) Limit() Limit { return t.limit }

// InRedis says whether the script can keep this limit.
func (t Terms) InRedis() bool { return t.kind != kindLocal }

// Quota is the greatest number of permits that can be had at once without
// waiting, and the time it takes to earn them: RateLimit-Policy's q and w.
func (t Terms) Quota() (permits int64, window time.Duration) {
	switch t.kind {
	case kindBucket, kindBursty:
		return max(1, t.free/t.cost), micros(ceilDiv(t.free, t.scale))
	case kindFixed, kindSliding:
		return t.free, time.Duration(t.cost) * time.Millisecond
	}
	return t.most, t.localWindow()
}

// Terms checks the limit and makes it ready. The error is a *FieldError.
func (l Limit) Terms() (Terms, error) {
	switch l.Algorithm {
	case TokenBucket, Reserve, SmoothBursty, Nginx, LeakyQueue, LeakyMeter:
		return l.bucketTerms()
	case FixedWindow, SlidingWindow:
		return l.windowTerms()
	case SubWindows, SlidingLog, SmoothWarmingUp:
		return l.localTerms()
	}
	return Terms{}, wrong("algorithm", "unknown %q", string(l.Algorithm))
}

// window gives a window's limit and interval: its own or, where only a rate is
// set, so many in a second.
func (l Limit) window() (limit int64, interval time.Duration, err error) {
	if l.PermitsPerSecond == 0 {
		interval, err = l.interval()
		return l.Limit, interval, err
	}
	limit = int64(l.PermitsPerSecond)
	switch {
	case l.Limit != 0 || l.IntervalSeconds != 0:
		return 0, 0, wrong("permitsPerSecond", "a window takes either this or limit and intervalSeconds")
	case !(l.PermitsPerSecond >= 1 && l.PermitsPerSecond <= maxRate) || float64(limit) != l.PermitsPerSecond:
		return 0, 0, wrong("permitsPerSecond", "of a window must be a whole number of 1 to %d; for others say limit and intervalSeconds", int64(maxRate))
	}
	return limit, time.Second, nil
}

func (l Limit) bucketTerms() (Terms, error) {
	cost, scale, err := l.perPermit()
	if err != nil {
		return Terms{}, err
	}
	t := Terms{kind: kindBucket, cost: cost, scale: scale, limit: l}
	if l.Algorithm == SmoothBursty {
		t.kind = kindBursty
	}
	if t.free, t.cap, err = l.freeAndCap(cost, scale); err != nil {
		return Terms{}, err
	}
	if t.cap > maxTicks || ceilDiv(t.cap, scale) > maxHorizon.Microseconds() {
		return Terms{}, wrong("permitsPerSecond", "burst and wait at this rate are more than can be kept exact (366 days, 2^51 ticks)")
	}
	t.most = t.cap / cost
	if t.kind == kindBursty {
		// Guava books any size against the next caller; a year of it is plenty.
		t.most = min(maxTicks, product(maxHorizon.Microseconds(), scale)) / cost
	}
	return t, nil
}

// freeAndCap is design.md's table of F and C, in ticks.
func (l Limit) freeAndCap(cost, scale int64) (free, most int64, err error) {
	if l.Burst < 0 || l.Burst > maxCount {
		return 0, 0, wrong("burst", "must be 0 to %d", maxCount)
	}
	switch l.Algorithm {
	case Nginx:
		return l.nginxTerms(cost)
	case LeakyQueue, LeakyMeter:
		if l.Burst < 1 {
			return 0, 0, wrong("burst", "must be 1 to %d", maxCount)
		}
		most = product(l.Burst, cost)
		if l.Algorithm == LeakyQueue {
			return cost, most, nil
		}
		return most, most, nil
	}
	if free, err = l.burstTicks(cost, scale); err != nil {
		return 0, 0, err
	}
	if l.Algorithm == TokenBucket {
		return free, free, nil
	}
	wait := time.Duration(l.MaxWaitMillis) * time.Millisecond
	if l.MaxWaitMillis < 0 || l.MaxWaitMillis > maxInterval.Milliseconds() {
		return 0, 0, wrong("maxWaitMillis", "must be 0 to %d", maxInterval.Milliseconds())
	}
	return free, sum(free, product(wait.Microseconds(), scale)), nil
}

func (l Limit) nginxTerms(cost int64) (free, most int64, err error) {
	if l.Delay < 0 || l.Delay > l.Burst {
		return 0, 0, wrong("delay", "must be 0 to burst (%d)", l.Burst)
	}
	most = product(l.Burst+1, cost)
	if l.NoDelay {
		return most, most, nil
	}
	return product(l.Delay+1, cost), most, nil
}

// burstTicks never gives less than one permit, or an idle bucket of a slow rate
// would refuse its first caller for ever.
func (l Limit) burstTicks(cost, scale int64) (int64, error) {
	if l.Burst > 0 && l.Algorithm != SmoothBursty {
		return product(l.Burst, cost), nil
	}
	burst, err := seconds("maxBurstSeconds", l.MaxBurstSeconds, maxHorizon)
	if err != nil {
		return 0, err
	}
	ticks := product(burst.Microseconds(), scale)
	if l.Algorithm == SmoothBursty {
		return ticks, nil // Guava's debt model admits the first caller anyway
	}
	return max(ticks, cost), nil
}

func (l Limit) windowTerms() (Terms, error) {
	limit, interval, err := l.window()
	if err != nil {
		return Terms{}, err
	}
	ms := interval.Milliseconds()
	if limit < 1 || limit > maxCount || (l.Algorithm == SlidingWindow && limit > maxTicks/ms) {
		return Terms{}, wrong("limit", "must be 1 to %d, and for a sliding window limit × interval in ms at most 2^51", maxCount)
	}
	t := Terms{kind: kindFixed, cost: ms, scale: 1, free: limit, cap: limit, most: limit, limit: l}
	if l.Algorithm == SlidingWindow {
		t.kind = kindSliding
	}
	return t, nil
}

func micros(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

// product and sum stop at a value that every check refuses instead of wrapping.
func product(a, b int64) int64 {
	if a > 0 && b > 2*maxTicks/a {
		return 2 * maxTicks
	}
	return a * b
}

func sum(a, b int64) int64 { return min(a+b, 2*maxTicks) }

// ceilDiv divides towards plus infinity; b > 0.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if a%b > 0 {
		q++
	}
	return q
}
