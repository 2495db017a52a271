package ratelimit

import "time"

type Kind string

// The kinds that the script knows; its header lists them.
const (
	KindBucket  Kind = "b"
	KindBursty  Kind = "g"
	KindFixed   Kind = "f"
	KindSliding Kind = "w"
	// The kinds that live in process only have no state that Redis could hold.
	KindLocal Kind = ""
)

// Terms are a Limit made ready for arithmetic: whole numbers only, checked so
// that no intermediate of the Go or the Lua leaves the exact range of a double.
//
// Buckets count in ticks of 1/scale µs. A permit costs cost ticks, so that a
// rate whose interval is no whole number of microseconds is still exact. Up to
// free ticks go without waiting and up to cap may be booked at all: design.md's
// F and C. Windows keep their interval in ms in cost and their limit in free.
type Terms struct {
	Kind                         Kind
	Cost, Scale, Free, Cap, Most int64
	limit                        Limit
}

// Limit gives back what the terms were made of.
func (t Terms) Limit() Limit { return t.limit }

// InRedis says whether the script can keep this limit.
func (t Terms) InRedis() bool { return t.Kind != KindLocal }

// Quota is the greatest number of permits that can be had at once without
// waiting, and the time it takes to earn them: RateLimit-Policy's q and w.
func (t Terms) Quota() (permits int64, window time.Duration) {
	switch t.Kind {
	case KindBucket, KindBursty:
		return max(1, t.Free/t.Cost), micros(ceilDiv(t.Free, t.Scale))
	case KindFixed, KindSliding:
		return t.Free, time.Duration(t.Cost) * time.Millisecond
	}
	return t.Most, t.localWindow()
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
	return Terms{}, BadField("algorithm", "unknown %q", string(l.Algorithm))
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
		return 0, 0, BadField("permitsPerSecond", "a window takes either this or limit and intervalSeconds")
	case !(l.PermitsPerSecond >= 1 && l.PermitsPerSecond <= maxRate) || float64(limit) != l.PermitsPerSecond:
		return 0, 0, BadField("permitsPerSecond", "of a window must be a whole number of 1 to %d; for others say limit and intervalSeconds", int64(maxRate))
	}
	return limit, time.Second, nil
}

func (l Limit) bucketTerms() (Terms, error) {
	cost, scale, err := l.perPermit()
	if err != nil {
		return Terms{}, err
	}
	t := Terms{Kind: KindBucket, Cost: cost, Scale: scale, limit: l}
	if l.Algorithm == SmoothBursty {
		t.Kind = KindBursty
	}
	if t.Free, t.Cap, err = l.freeAndCap(cost, scale); err != nil {
		return Terms{}, err
	}
	if t.Cap > MaxTicks || ceilDiv(t.Cap, scale) > maxHorizon.Microseconds() {
		return Terms{}, BadField("permitsPerSecond", "burst and wait at this rate are more than can be kept exact (366 days, 2^51 ticks)")
	}
	t.Most = t.Cap / cost
	if t.Kind == KindBursty {
		// Guava books any size against the next caller; a year of it is plenty.
		t.Most = min(MaxTicks, product(maxHorizon.Microseconds(), scale)) / cost
	}
	return t, nil
}

// freeAndCap is design.md's table of F and C, in ticks.
func (l Limit) freeAndCap(cost, scale int64) (free, most int64, err error) {
	if l.Burst < 0 || l.Burst > maxCount {
		return 0, 0, BadField("burst", "must be 0 to %d", maxCount)
	}
	switch l.Algorithm {
	case Nginx:
		return l.nginxTerms(cost)
	case LeakyQueue, LeakyMeter:
		if l.Burst < 1 {
			return 0, 0, BadField("burst", "must be 1 to %d", maxCount)
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
		return 0, 0, BadField("maxWaitMillis", "must be 0 to %d", maxInterval.Milliseconds())
	}
	return free, sum(free, product(wait.Microseconds(), scale)), nil
}

func (l Limit) nginxTerms(cost int64) (free, most int64, err error) {
	if l.Delay < 0 || l.Delay > l.Burst {
		return 0, 0, BadField("delay", "must be 0 to burst (%d)", l.Burst)
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
	if limit < 1 || limit > maxCount || (l.Algorithm == SlidingWindow && limit > MaxTicks/ms) {
		return Terms{}, BadField("limit", "must be 1 to %d, and for a sliding window limit × interval in ms at most 2^51", maxCount)
	}
	t := Terms{Kind: KindFixed, Cost: ms, Scale: 1, Free: limit, Cap: limit, Most: limit, limit: l}
	if l.Algorithm == SlidingWindow {
		t.Kind = KindSliding
	}
	return t, nil
}

// longestWait is what the limit itself allows.
func (t Terms) LongestWait() time.Duration {
	switch t.Kind {
	case KindBucket, KindBursty:
		return micros(ceilDiv(t.Cap-t.Free, t.Scale))
	case KindLocal:
		return time.Duration(t.limit.MaxWaitMillis) * time.Millisecond
	}
	return 0
}

// earn is the time in which n permits come in.
func (t Terms) Earn(n int64) time.Duration { return micros(product(n, t.Cost) / t.Scale) }

// earned is how many permits come in within d.
func (t Terms) Earned(d time.Duration) int64 { return product(d.Microseconds(), t.Scale) / t.Cost }

// share is a node's part of a limit: the rate divided, and at least one permit.
func (t Terms) Share(nodes int64) Terms {
	nodes = max(1, min(nodes, 1000))
	switch t.Kind {
	case KindBucket, KindBursty:
		t.Cost = min(product(t.Cost, nodes), MaxTicks)
		if t.Kind == KindBucket {
			t.Free = max(t.Free, t.Cost)
		}
		t.Cap = max(t.Cap, t.Free)
		t.Most = max(1, t.Most/nodes)
	case KindFixed, KindSliding:
		t.Free = max(1, t.Free/nodes)
		t.Cap, t.Most = t.Free, t.Free
	}
	return t
}

func micros(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

// product and sum stop at a value that every check refuses instead of wrapping.
func product(a, b int64) int64 {
	if a > 0 && b > 2*MaxTicks/a {
		return 2 * MaxTicks
	}
	return a * b
}

func sum(a, b int64) int64 { return min(a+b, 2*MaxTicks) }

// ceilDiv divides towards plus infinity; b > 0.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if a%b > 0 {
		q++
	}
	return q
}
