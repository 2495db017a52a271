package ratelimit

import (
	"errors"
	"fmt"
	"time"

	core "flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/rules"
)

// Algorithm decides which requests of a limit are admitted. The zero value is TokenBucket.
type Algorithm int

// The algorithms.
const (
	// TokenBucket refills at the rate and holds up to Burst permits. It alone lets callers wait.
	TokenBucket Algorithm = iota
	// FixedWindow counts for one interval, which begins with its first request. Up to
	// 2 × Permits - 1 can pass within one interval's length around its end.
	FixedWindow
	// SlidingWindow bounds every interval of length Per. It is exact, as SlidingLog, up to 100
	// Permits. Above, it adds to an interval's count the last one's, weighted by how much of it is
	// still less than Per ago: requests at chosen moments can take 2 × Permits - 1. Permits × Per
	// in ms is at most 2^51.
	SlidingWindow
	// SlidingLog records every admission, so that no interval of length Per exceeds Permits. Above
	// 100 Permits it works in the Memory store alone. It needs memory for each permit.
	SlidingLog
)

// Limit is how many permits a key has. It is exact for each Permits and Per, such as one permit
// in three seconds.
type Limit struct {
	// Permits per interval, 1 to 1e9, and at most 1e6 in a second.
	Permits int
	// Per is the interval, 1 ms to 24 h, in whole milliseconds.
	Per time.Duration
	// Burst is how many permits a token bucket holds while nobody takes any, 1 to 1e9. 0 means
	// Permits. The windows have none. At the rate, Burst and MaxWait are at most 366 days.
	Burst int
	// MaxWait is the longest time that Reserve and Wait wait for permits of a token bucket. It is
	// at most 24 h, in whole milliseconds. 0 means a minute. A negative value admits nobody in
	// advance.
	MaxWait time.Duration
	// Algorithm is TokenBucket if it is not set.
	Algorithm Algorithm
}

const defaultMaxWait = time.Minute

// change is the limit in the form of a rule.
func (l Limit) change() (rules.Change, error) {
	permits, per := int64(l.Permits), l.Per.Seconds()
	c := rules.Change{Limit: &permits, IntervalSeconds: &per}
	const most = 24 * time.Hour
	switch { // a rule has other names for these fields
	case l.Permits < 1 || l.Permits > 1e9:
		return c, errors.New("permits: must be 1 to 1000000000")
	case l.Per < time.Millisecond || l.Per > most || l.Per%time.Millisecond != 0:
		return c, errors.New("per: must be 1 ms to 24 h, in whole milliseconds")
	}
	algorithm, err := l.algorithm()
	if c.Algorithm = &algorithm; err != nil || algorithm != core.Reserve {
		return c, err
	}
	burst, wait := int64(l.Burst), l.MaxWait.Milliseconds()
	if burst == 0 {
		burst = permits
	}
	switch {
	case l.MaxWait > most || l.MaxWait > 0 && l.MaxWait%time.Millisecond != 0:
		return c, errors.New("maxWait: must be at most 24 h, in whole milliseconds")
	case l.MaxWait == 0:
		wait = defaultMaxWait.Milliseconds()
	case l.MaxWait < 0:
		wait = 0
	}
	c.Burst, c.MaxWaitMillis = &burst, &wait
	return c, nil
}

func (l Limit) algorithm() (core.Algorithm, error) {
	switch l.Algorithm {
	case TokenBucket:
		return core.Reserve, nil
	case FixedWindow:
		return core.FixedWindow, nil
	case SlidingWindow:
		if l.Permits <= core.MaxSharedLog {
			return core.SlidingLog, nil
		}
		return core.SlidingWindow, nil
	case SlidingLog:
		return core.SlidingLog, nil
	}
	return "", fmt.Errorf("unknown algorithm %d", l.Algorithm)
}

// compile returns the limit in the form of a rule, and its params for a store.
func (l Limit) compile(s Store) (c rules.Change, p core.Params, err error) {
	if c, err = l.change(); err == nil {
		p, err = c.WithDefaults().Params()
	}
	if err == nil && s.client != nil {
		err = p.CheckRedis()
	}
	if err != nil {
		return c, p, fmt.Errorf("ratelimit: limit: %w", inPermits(err))
	}
	return c, p, nil
}

// inPermits names a rule's rate as a Limit does.
func inPermits(err error) error {
	bad, ok := errors.AsType[*core.FieldError](err)
	if ok && (bad.Field == "limit" || bad.Field == "permitsPerSecond") {
		return core.BadField("permits", "%s", bad.Problem)
	}
	return err
}
