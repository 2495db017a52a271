package ratelimit

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"
)

// Algorithm names a way to limit. The zero value is not one of them.
type Algorithm string

// The algorithms. Those without a remark work in Redis and in process alike.
const (
	// TokenBucket admits a burst and denies what exceeds it.
	TokenBucket Algorithm = "token_bucket"
	// Reserve is a token bucket that admits up to maxWait in advance: the caller waits until its
	// permits are good. It is the default where a rate is set.
	Reserve Algorithm = "reserve"
	// SmoothBursty is Guava's RateLimiter: each request pays for the one before,
	// and a new limiter has no stored permits.
	SmoothBursty Algorithm = "smooth_bursty"
	// Nginx is ngx_http_limit_req_module: burst, delay, nodelay.
	Nginx Algorithm = "nginx"
	// LeakyQueue admits one request each interval and queues up to burst requests.
	LeakyQueue Algorithm = "leaky_queue"
	// LeakyMeter has room for burst requests, drains at the rate and denies the rest.
	LeakyMeter Algorithm = "leaky_meter"
	// FixedWindow counts for one interval, which begins with its first request.
	FixedWindow Algorithm = "fixed_window"
	// SlidingWindow adds to a window's count the last one's, weighted by how much
	// of it overlaps the interval before now: an estimate.
	SlidingWindow Algorithm = "sliding_window"
	// SubWindows counts in parts of the interval. In process only.
	SubWindows Algorithm = "sub_windows"
	// SlidingLog records every admission, so it is exact. Above 100 permits in process only.
	SlidingLog Algorithm = "sliding_log"
	// SmoothWarmingUp is Guava's: slower after idle time. In process only.
	SmoothWarmingUp Algorithm = "smooth_warming_up"
)

// Bounds of a limit. They keep every product in the scripts below 2^53, where
// the doubles of Lua 5.1 stop being exact.
const (
	MaxTicks    = int64(1) << 51
	maxHorizon  = 366 * 24 * time.Hour
	maxInterval = 24 * time.Hour
	maxRate     = 1e6
	maxCount    = int64(1_000_000_000)
)

// Limit is an algorithm and its numbers, with the API's field names. An algorithm
// ignores the fields that it does not read.
type Limit struct {
	Algorithm Algorithm `json:"algorithm" yaml:"algorithm"`
	// PermitsPerSecond, above 0 and up to 1e6: 0.5 is one each two seconds. A bucket
	// may use Limit per IntervalSeconds instead, for rates such as one in three
	// seconds. For a window it is the limit of one second.
	PermitsPerSecond float64 `json:"permitsPerSecond,omitempty" yaml:"permitsPerSecond"`
	// MaxBurstSeconds is how many seconds' permits accumulate unused, but at least
	// one permit. For token_bucket, reserve and smooth_bursty.
	MaxBurstSeconds float64 `json:"maxBurstSeconds,omitempty" yaml:"maxBurstSeconds"`
	// MaxWaitMillis is how long an admitted caller waits at most. For reserve,
	// smooth_bursty and smooth_warming_up.
	MaxWaitMillis int64 `json:"maxWaitMillis,omitempty" yaml:"maxWaitMillis"`
	// Burst in permits: nginx's burst, and the size of the leaky queue and meter. For
	// token_bucket and reserve it replaces MaxBurstSeconds.
	Burst int64 `json:"burst,omitempty" yaml:"burst"`
	// Delay and NoDelay are those of nginx's limit_req.
	Delay   int64 `json:"delay,omitempty" yaml:"delay"`
	NoDelay bool  `json:"nodelay,omitempty" yaml:"nodelay"`
	// Limit permits per IntervalSeconds, for the windows and the sliding log.
	Limit           int64   `json:"limit,omitempty" yaml:"limit"`
	IntervalSeconds float64 `json:"intervalSeconds,omitempty" yaml:"intervalSeconds"`
	// Parts that sub_windows divides the interval into, 1 to 1000.
	Parts int64 `json:"parts,omitempty" yaml:"parts"`
	// WarmupSeconds, and ColdFactor of 1 to 1000, for smooth_warming_up.
	WarmupSeconds float64 `json:"warmupSeconds,omitempty" yaml:"warmupSeconds"`
	ColdFactor    float64 `json:"coldFactor,omitempty" yaml:"coldFactor"`
}

// FieldError is an invalid field of a limit or a rule, with the API's field name.
type FieldError struct{ Field, Problem string }

// Error returns the field and its problem.
func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// BadField makes a *FieldError.
func BadField(field, format string, args ...any) error {
	return &FieldError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// perPermit compiles a limit whose permits accumulate at a rate. compile gets the interval between
// permits as cost/scale microseconds in lowest terms: 700/s is 10000/7. It reads the rate in its
// shortest decimal form, so that 0.1 is exactly a tenth. A rate with more digits than compile
// accepts is rounded, see rounded.
func (l Limit) perPermit(compile func(cost, scale int64) (Params, error)) (Params, error) {
	perSecond, ok := new(big.Rat).SetString(strconv.FormatFloat(l.PermitsPerSecond, 'f', -1, 64))
	switch {
	case !ok || l.PermitsPerSecond < 0 || l.PermitsPerSecond > maxRate:
		return Params{}, BadField("permitsPerSecond", "must be above 0 and at most %d",
			int64(maxRate))
	case l.PermitsPerSecond == 0:
		var err error
		if perSecond, err = l.perInterval(); err != nil {
			return Params{}, err
		}
	}
	err := BadField("permitsPerSecond", "is too small")
	for i, interval := range rounded(new(big.Rat).Quo(big.NewRat(1e6, 1), perSecond)) {
		params, refused := compile(interval.Num().Int64(), interval.Denom().Int64())
		if refused == nil {
			return params, nil
		}
		if i == 0 {
			err = refused
		}
	}
	return Params{}, err
}

// perInterval is the rate in permits per second of Limit per IntervalSeconds.
func (l Limit) perInterval() (*big.Rat, error) {
	if l.Limit == 0 && l.IntervalSeconds == 0 {
		return nil, BadField("permitsPerSecond", "must be above 0 and at most %d", int64(maxRate))
	}
	interval, err := l.interval()
	if err != nil {
		return nil, err
	}
	if l.Limit < 1 || l.Limit > maxCount {
		return nil, BadField("limit", "must be 1 to %d", maxCount)
	}
	rate := new(big.Rat).SetFrac64(l.Limit*1000, interval.Milliseconds())
	if rate.Cmp(big.NewRat(maxRate, 1)) > 0 {
		return nil, BadField("limit", "is more than %d in a second", int64(maxRate))
	}
	return rate, nil
}

// interval is the interval of a window in whole milliseconds. Zero is an error and never means
// "unlimited". Network delays make finer intervals meaningless.
func (l Limit) interval() (time.Duration, error) {
	interval, err := seconds("intervalSeconds", l.IntervalSeconds, maxInterval)
	if err != nil {
		return 0, err
	}
	if interval < time.Millisecond || interval%time.Millisecond != 0 {
		return 0, BadField("intervalSeconds", "must be above 0, in whole milliseconds")
	}
	return interval, nil
}

// seconds converts a field in seconds to a duration of whole microseconds.
func seconds(field string, s float64, most time.Duration) (time.Duration, error) {
	if math.IsNaN(s) || s < 0 || s > most.Seconds() {
		return 0, BadField(field, "must be 0 to %d", int64(most.Seconds()))
	}
	return time.Duration(math.Round(s*1e6)) * time.Microsecond, nil
}
