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

// The algorithms. All but the last three work in Redis and in process alike.
const (
	// TokenBucket admits a burst and refuses beyond it.
	TokenBucket Algorithm = "token_bucket"
	// Reserve is a token bucket that books up to maxWait ahead: the caller
	// waits. The default wherever a rate is set.
	Reserve Algorithm = "reserve"
	// SmoothBursty is Guava's: who asks pays for the one before; starts empty.
	SmoothBursty Algorithm = "smooth_bursty"
	// Nginx is limit_req: burst, delay, nodelay.
	Nginx Algorithm = "nginx"
	// LeakyQueue lets out one each interval and holds burst of them.
	LeakyQueue Algorithm = "leaky_queue"
	// LeakyMeter holds burst and refuses what would spill.
	LeakyMeter Algorithm = "leaky_meter"
	// FixedWindow counts from the first request on, for one interval.
	FixedWindow Algorithm = "fixed_window"
	// SlidingWindow weighs the last window's count by how much of it is left.
	SlidingWindow Algorithm = "sliding_window"
	// SubWindows counts in parts of the interval; in process only.
	SubWindows Algorithm = "sub_windows"
	// SlidingLog remembers every admission; in process only.
	SlidingLog Algorithm = "sliding_log"
	// SmoothWarmingUp is Guava's, cold after idling; in process only.
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

// Limit is what is allowed, in the words of the contract wherever a rate is
// set. Fields that an algorithm does not read must be zero or are ignored as
// noted. DefaultLimit gives the contract's defaults.
type Limit struct {
	Algorithm Algorithm `json:"algorithm" yaml:"algorithm"`
	// PermitsPerSecond in (0, 1e6], as a decimal: 0.5 is one each two seconds.
	// Zero for a bucket means Limit per IntervalSeconds, which says thirds. Of a
	// window it means so many in one second.
	PermitsPerSecond float64 `json:"permitsPerSecond,omitempty" yaml:"permitsPerSecond"`
	// MaxBurstSeconds of permits that pile up unused. Less than one permit's
	// worth counts as one permit. For token_bucket, reserve, smooth_bursty.
	MaxBurstSeconds float64 `json:"maxBurstSeconds,omitempty" yaml:"maxBurstSeconds"`
	// MaxWaitMillis that may be booked ahead. For reserve, smooth_bursty and
	// smooth_warming_up.
	MaxWaitMillis int64 `json:"maxWaitMillis,omitempty" yaml:"maxWaitMillis"`
	// Burst in permits: nginx's burst, the leaky queue's and meter's size; for
	// token_bucket and reserve it takes MaxBurstSeconds' place.
	Burst int64 `json:"burst,omitempty" yaml:"burst"`
	// Delay and NoDelay are limit_req's.
	Delay   int64 `json:"delay,omitempty" yaml:"delay"`
	NoDelay bool  `json:"nodelay,omitempty" yaml:"nodelay"`
	// Limit requests per IntervalSeconds: the windows and the sliding log.
	Limit           int64   `json:"limit,omitempty" yaml:"limit"`
	IntervalSeconds float64 `json:"intervalSeconds,omitempty" yaml:"intervalSeconds"`
	// Parts of the interval that sub_windows counts in, 1 to 1000.
	Parts int64 `json:"parts,omitempty" yaml:"parts"`
	// WarmupSeconds and ColdFactor (above 1; 3) of smooth_warming_up.
	WarmupSeconds float64 `json:"warmupSeconds,omitempty" yaml:"warmupSeconds"`
	ColdFactor    float64 `json:"coldFactor,omitempty" yaml:"coldFactor"`
}

// DefaultLimit is the /randomPath limiter's: 1000/s, 1 s of burst, 1 s of wait.
func DefaultLimit() Limit {
	return Limit{Algorithm: Reserve, PermitsPerSecond: 1000, MaxBurstSeconds: 1, MaxWaitMillis: 1000}
}

// FieldError names the field that is wrong, in the contract's spelling.
type FieldError struct{ Field, Problem string }

func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

func BadField(field, format string, args ...any) error {
	return &FieldError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// Validate reports the first field that is wrong as a *FieldError.
func (l Limit) Validate() error {
	_, err := l.Terms()
	return err
}

// perPermit gives the interval between permits as cost/scale microseconds in
// lowest terms: 700/s is 10000/7. The rate is read as the decimal it is
// written as, so that 0.1 is a tenth.
func (l Limit) perPermit() (cost, scale int64, err error) {
	perSecond, ok := new(big.Rat).SetString(strconv.FormatFloat(l.PermitsPerSecond, 'f', -1, 64))
	switch {
	case !ok || l.PermitsPerSecond < 0 || l.PermitsPerSecond > maxRate:
		return 0, 0, BadField("permitsPerSecond", "must be above 0 and at most %d", int64(maxRate))
	case l.PermitsPerSecond == 0:
		if perSecond, err = l.perInterval(); err != nil {
			return 0, 0, err
		}
	}
	interval := new(big.Rat).Quo(big.NewRat(1e6, 1), perSecond)
	if !interval.Num().IsInt64() || !interval.Denom().IsInt64() ||
		interval.Num().Int64() > MaxTicks || interval.Denom().Int64() > MaxTicks {
		return 0, 0, BadField("permitsPerSecond", "too small, or of more digits than can be kept exact")
	}
	return interval.Num().Int64(), interval.Denom().Int64(), nil
}

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

// interval of a window: whole milliseconds, because a window of zero must not
// mean "unlimited" and finer ones mean nothing across a network.
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

func seconds(field string, s float64, most time.Duration) (time.Duration, error) {
	if math.IsNaN(s) || s < 0 || s > most.Seconds() {
		return 0, BadField(field, "must be 0 to %d", int64(most.Seconds()))
	}
	return time.Duration(math.Round(s*1e6)) * time.Microsecond, nil
}
