package ratelimit

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"
)

// ErrLimited says that Wait was refused: the wait would be longer than the
// limit or the context's deadline allows, or no wait would help.
var ErrLimited = errors.New("ratelimit: limited")

// AnyWait as a longest wait means: as long as the limit itself allows.
const AnyWait = time.Duration(math.MaxInt64)

// Limiter is one limit, for one key. n below 1 is ErrPermits.
type Limiter interface {
	// TryAcquire takes n permits that are good now, or none.
	TryAcquire(n int64) (Decision, error)
	// Reserve books n permits that are good within maxWait, or none. The
	// caller waits for Decision.Wait.
	Reserve(n int64, maxWait time.Duration) (Decision, error)
	// Wait books n permits and waits for them, and gives them back when ctx
	// ends first. ErrLimited when they can't be had by ctx's deadline.
	Wait(ctx context.Context, n int64) (Decision, error)
	// SetRate changes the rate (for a window: its limit, as permits per second
	// × interval). What was booked stays booked; nothing is refilled.
	SetRate(permitsPerSecond float64) error
}

// engine is an algorithm: pure of clocks and locks. Times are µs.
type engine interface {
	decide(now int64, a ask) Decision
	refund(now, booked, n int64)
	// described gives Remaining and ResetAfter; it may forget what is over.
	described(now int64) Decision
	clone() engine
	// set changes the terms at the time now, keeping what was booked.
	set(t Terms, now int64)
}

// Local is a limiter in this process, safe for many goroutines. Nobody waits
// with its lock held.
type Local struct {
	now   func() time.Time
	sleep func(context.Context, time.Duration) error

	mu     sync.Mutex
	terms  Terms
	engine engine
}

var _ Limiter = (*Local)(nil)

// LocalOption changes a Local: tests give it a clock of their own.
type LocalOption func(*Local)

// WithClock reads the time from now.
func WithClock(now func() time.Time) LocalOption { return func(l *Local) { l.now = now } }

// WithSleep waits by sleep, which returns early with ctx's error.
func WithSleep(sleep func(context.Context, time.Duration) error) LocalOption {
	return func(l *Local) { l.sleep = sleep }
}

// NewLocal makes a limiter of any algorithm. The error is a *FieldError.
func NewLocal(limit Limit, opts ...LocalOption) (*Local, error) {
	terms, err := limit.Terms()
	if err != nil {
		return nil, err
	}
	l := &Local{now: steadyClock(), sleep: sleepFor, terms: terms}
	for _, opt := range opts {
		opt(l)
	}
	l.engine = newEngine(terms, l.now().UnixMicro())
	return l, nil
}

func newEngine(t Terms, now int64) engine {
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

// TryAcquire is Limiter's.
func (l *Local) TryAcquire(n int64) (Decision, error) { return l.Reserve(n, 0) }

// Reserve is Limiter's.
func (l *Local) Reserve(n int64, maxWait time.Duration) (Decision, error) {
	if n < 1 {
		return Decision{}, ErrPermits
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	d := l.engine.decide(now.UnixMicro(), ask{n: n, least: n, maxWait: max(0, maxWait.Microseconds())})
	d.At = unixMicros(now.UnixMicro())
	return d, nil
}

// Peek answers as Reserve would and charges nothing.
func (l *Local) Peek(n int64, maxWait time.Duration) (Decision, error) {
	if n < 1 {
		return Decision{}, ErrPermits
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now().UnixMicro()
	engine := l.engine.clone()
	before := engine.described(now)
	d := engine.decide(now, ask{n: n, least: n, maxWait: max(0, maxWait.Microseconds())})
	d.At, d.Remaining, d.ResetAfter = unixMicros(now), before.Remaining, before.ResetAfter
	return d, nil
}

// Wait is Limiter's.
func (l *Local) Wait(ctx context.Context, n int64) (Decision, error) {
	longest := AnyWait
	if deadline, ok := ctx.Deadline(); ok {
		longest = time.Until(deadline)
	}
	if err := ctx.Err(); err != nil {
		return Decision{}, err
	}
	d, err := l.Reserve(n, longest)
	if err != nil {
		return d, err
	}
	if !d.Allowed {
		return d, ErrLimited
	}
	if err := l.sleep(ctx, d.Wait); err != nil {
		l.Refund(n, d.At)
		return d, err
	}
	return d, nil
}

// Refund gives back n permits of a Decision made at that time.
func (l *Local) Refund(n int64, booked time.Time) {
	if n < 1 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.engine.refund(l.now().UnixMicro(), booked.UnixMicro(), n)
}

// SetRate is Limiter's.
func (l *Local) SetRate(permitsPerSecond float64) error {
	l.mu.Lock()
	limit := l.terms.limit
	l.mu.Unlock()
	if !(permitsPerSecond > 0 && permitsPerSecond <= maxRate) {
		return BadField("permitsPerSecond", "must be above 0 and at most %d", int64(maxRate))
	}
	if limit.PermitsPerSecond == 0 && limit.IntervalSeconds > 0 {
		limit.Limit = int64(math.Round(permitsPerSecond*limit.IntervalSeconds*1e6)) / 1e6
	} else {
		limit.PermitsPerSecond = permitsPerSecond
	}
	return l.SetLimit(limit)
}

// SetLimit changes every number of the limit and keeps what was booked. The
// algorithm stays: a different one is a different limiter.
func (l *Local) SetLimit(limit Limit) error {
	terms, err := limit.Terms()
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if limit.Algorithm != l.terms.limit.Algorithm {
		return BadField("algorithm", "is %s and can't become %s", l.terms.limit.Algorithm, limit.Algorithm)
	}
	l.terms = terms
	l.engine.set(terms, l.now().UnixMicro())
	return nil
}

// steadyClock is the wall clock that no correction moves: it goes on by the
// monotonic clock from where it began.
func steadyClock() func() time.Time {
	began := time.Now()
	return func() time.Time { return began.Add(time.Since(began)) }
}

func sleepFor(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
