package ratelimit

import (
	"math/bits"
	"time"
	"unique"
)

// Kind is the family of algorithms that decides a limit.
type Kind string

// The kinds that the script supports, in its notation.
const (
	KindBucket  Kind = "b"
	KindBursty  Kind = "g"
	KindFixed   Kind = "f"
	KindSliding Kind = "w"
	KindLog     Kind = "l"
	// KindLocal: in process only.
	KindLocal Kind = ""
)

// Accumulates reports whether permits accumulate at a rate up to a burst. Such limits are buckets,
// and can read each other's state.
func (k Kind) Accumulates() bool { return k == KindBucket || k == KindBursty }

// Params are a Limit as whole numbers. Limit.Params makes them. It checks that every intermediate
// result in Go and Lua stays in the exact range of a double. The algorithm decides what they mean:
//
//	             Cost            Scale           Free                      Cap
//	bucket       ticks a permit  ticks per µs    level without a wait      highest level
//	window       interval, ms    1               limit                     limit
//	log          interval, µs    1               limit                     limit
//	sub-windows  interval, µs    parts           limit                     limit
//	warm-up      ticks a permit  ticks per µs    warm-up period, µs        0
//
// Levels are in ticks of 1/Scale µs, so that a rate whose interval is no whole number of
// microseconds is exact. No request may be for more than MaxPermits.
type Params struct {
	Kind                               Kind
	Cost, Scale, Free, Cap, MaxPermits int64
	// A handle, because each request copies its Params. Params of equal limits are equal.
	limit unique.Handle[Limit]
}

// Limit is the limit from which the params were made.
func (t Params) Limit() Limit { return t.limit.Value() }

// InRedis reports whether the script supports this limit.
func (t Params) InRedis() bool { return t.Kind != KindLocal }

// CheckRedis returns a *FieldError unless the script supports this limit.
func (t Params) CheckRedis() error {
	switch {
	case t.InRedis():
		return nil
	case t.limit.Value().Algorithm == SlidingLog:
		return BadField("limit", "a sliding_log of more than %d permits works in one process only",
			MaxSharedLog)
	}
	return BadField("algorithm", "%s works in one process only", t.limit.Value().Algorithm)
}

// Quota is the most permits that can be taken at once without a wait, and the time in which they
// accumulate. They are q and w of the header RateLimit-Policy.
func (t Params) Quota() (permits int64, window time.Duration) {
	switch t.Kind {
	case KindBucket, KindBursty:
		return max(1, t.Free/t.Cost), micros(ceilDiv(t.Free, t.Scale))
	case KindFixed, KindSliding:
		return t.Free, time.Duration(t.Cost) * time.Millisecond
	}
	return t.MaxPermits, t.localWindow()
}

// Params checks the limit and compiles it. The error is a *FieldError.
func (l Limit) Params() (Params, error) {
	switch l.Algorithm {
	case TokenBucket, Reserve, SmoothBursty, Nginx, LeakyQueue, LeakyMeter:
		return l.perPermit(l.bucketParams)
	case FixedWindow, SlidingWindow:
		return l.windowParams()
	case SubWindows, SlidingLog, SmoothWarmingUp:
		return l.localParams()
	}
	return Params{}, BadField("algorithm", "unknown %q", string(l.Algorithm))
}

// window is a window's limit and interval. A rate alone is a limit for one second.
func (l Limit) window() (limit int64, interval time.Duration, err error) {
	if l.PermitsPerSecond == 0 {
		interval, err = l.interval()
		return l.Limit, interval, err
	}
	limit = int64(l.PermitsPerSecond)
	if !(l.PermitsPerSecond >= 1 && l.PermitsPerSecond <= maxRate) ||
		float64(limit) != l.PermitsPerSecond {
		return 0, 0, BadField("permitsPerSecond",
			"of a window must be a whole number of 1 to %d; else set limit and intervalSeconds",
			int64(maxRate))
	}
	return limit, time.Second, nil
}

func (l Limit) bucketParams(cost, scale int64) (t Params, err error) {
	t = Params{Kind: KindBucket, Cost: cost, Scale: scale, limit: unique.Make(l)}
	if l.Algorithm == SmoothBursty {
		t.Kind = KindBursty
	}
	if t.Free, t.Cap, err = l.freeAndCap(cost, scale); err != nil {
		return Params{}, err
	}
	if t.Cap > MaxTicks || ceilDiv(t.Cap, scale) > maxHorizon.Microseconds() {
		return Params{}, BadField("permitsPerSecond",
			"burst and wait at this rate exceed what can be exact (366 days, 2^51 ticks)")
	}
	t.MaxPermits = t.Cap / cost
	if t.Kind == KindBursty {
		t.MaxPermits, err = permitsOfAYear(cost, scale)
	}
	return t, err
}

// permitsOfAYear is the largest request of Guava's limiters, which charge requests of any size to
// the next caller.
func permitsOfAYear(cost, scale int64) (int64, error) {
	n := min(MaxTicks, product(maxHorizon.Microseconds(), scale)) / cost
	if n < 1 {
		return 0, BadField("permitsPerSecond", "is less than one in 366 days")
	}
	return n, nil
}

// freeAndCap are two levels in ticks: the first up to which a bucket admits without a wait, and its
// upper limit. docs/explanation/rate-limiting.md has them as a table.
func (l Limit) freeAndCap(cost, scale int64) (free, most int64, err error) {
	if l.Burst < 0 || l.Burst > maxCount {
		return 0, 0, BadField("burst", "must be 0 to %d", maxCount)
	}
	switch l.Algorithm {
	case Nginx:
		return l.nginxFreeAndCap(cost)
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
	return free, sum(free, product(l.MaxWaitMillis*1000, scale)), l.checkWait()
}

func (l Limit) checkWait() error {
	if l.MaxWaitMillis < 0 || l.MaxWaitMillis > maxInterval.Milliseconds() {
		return BadField("maxWaitMillis", "must be 0 to %d", maxInterval.Milliseconds())
	}
	return nil
}

func (l Limit) nginxFreeAndCap(cost int64) (free, most int64, err error) {
	if l.Delay < 0 || l.Delay > l.Burst {
		return 0, 0, BadField("delay", "must be 0 to burst (%d)", l.Burst)
	}
	most = product(l.Burst+1, cost)
	if l.NoDelay {
		return most, most, nil
	}
	return product(l.Delay+1, cost), most, nil
}

// burstTicks is at least one permit. Otherwise an idle bucket of a slow rate would deny every
// request.
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
		return ticks, nil // the next caller pays, so the first is always admitted
	}
	return max(ticks, cost), nil
}

func (l Limit) windowParams() (Params, error) {
	limit, interval, err := l.window()
	if err != nil {
		return Params{}, err
	}
	ms := interval.Milliseconds()
	if limit < 1 || limit > maxCount || (l.Algorithm == SlidingWindow && limit > MaxTicks/ms) {
		return Params{}, BadField("limit",
			"must be 1 to %d, and a sliding window's limit × interval in ms at most 2^51", maxCount)
	}
	kind := KindFixed
	if l.Algorithm == SlidingWindow {
		kind = KindSliding
	}
	return Params{kind, ms, 1, limit, limit, limit, unique.Make(l)}, nil
}

// MaxWait is the longest wait that the limit itself allows.
func (t Params) MaxWait() time.Duration {
	switch t.Kind {
	case KindBucket, KindBursty:
		return micros(ceilDiv(t.Cap-t.Free, t.Scale))
	case KindLocal:
		return time.Duration(t.limit.Value().MaxWaitMillis) * time.Millisecond
	}
	return 0
}

// TimeFor is the time in which n permits accumulate.
func (t Params) TimeFor(n int64) time.Duration { return micros(product(n, t.Cost) / t.Scale) }

// PermitsIn is how many permits accumulate within d.
func (t Params) PermitsIn(d time.Duration) int64 {
	return product(d.Microseconds(), t.Scale) / t.Cost
}

// RefundMark identifies the permits of a decision to a refund, in µs. For windows and logs it is
// the time at which they were taken. For the others it is the time at which the limiter is full,
// because that time changes as soon as others take permits.
func (t Params) RefundMark(taken Decision) int64 {
	switch t.limit.Value().Algorithm {
	case FixedWindow, SlidingWindow, SubWindows, SlidingLog:
		return taken.At.UnixMicro()
	}
	return taken.At.Add(taken.ResetAfter).UnixMicro()
}

// Share is one node's part of the limit: the rate divided by nodes (1 to 1000), with
// room for one permit at least.
func (t Params) Share(nodes int64) Params {
	nodes = max(1, min(nodes, 1000))
	switch t.Kind {
	case KindBucket, KindBursty:
		t.Cost = min(product(t.Cost, nodes), MaxTicks)
		if t.Kind == KindBucket {
			t.Free = max(t.Free, t.Cost)
		}
		t.Cap = max(t.Cap, t.Free)
		t.MaxPermits = max(1, t.MaxPermits/nodes)
	case KindFixed, KindSliding, KindLog:
		t.Free = max(1, t.Free/nodes)
		t.Cap, t.MaxPermits = t.Free, t.Free
	}
	return t
}

func micros(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

// product and sum do not overflow: they stop at a value above every check's bound.
func product(a, b int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if a > 0 && b > 0 && (high > 0 || low > 2*uint64(MaxTicks)) {
		return 2 * MaxTicks
	}
	return a * b
}

func sum(a, b int64) int64 { return min(a+b, 2*MaxTicks) }

// ceilDiv divides and rounds up; b > 0.
func ceilDiv(a, b int64) int64 {
	if b == 1 { // as most scales are, without the time of a division
		return a
	}
	q := a / b
	if a%b > 0 {
		q++
	}
	return q
}
