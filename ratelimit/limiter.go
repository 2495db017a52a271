package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	core "flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/ratelimit/rules"
)

// Errors. Compare them with errors.Is.
var (
	// ErrLimited means that Wait got no permits: the wait would be too long, or too many callers
	// wait already.
	ErrLimited = gate.ErrLimited
	// ErrUnavailable means that Redis did not decide in time. The permits may be taken.
	ErrUnavailable = errors.New("ratelimit: redis did not decide in time")
	// ErrPermits means that a request was for less than one permit.
	ErrPermits = core.ErrPermits
)

// Decision is the answer to a request. Durations are whole microseconds.
type Decision struct {
	// Allowed: the permits are taken. Those of a Reservation are good once Delay has passed.
	Allowed bool
	// Never: no wait helps, because the request exceeds the burst and what accumulates in the wait
	// that it accepts. Implies !Allowed.
	Never bool
	// Delay until the permits are good, 0 except for a Reservation.
	Delay time.Duration
	// Remaining permits that are available without a wait, 0 to the burst.
	Remaining int
	// RetryAfter is the shortest time after which the same request can be admitted. It is above 0
	// if the request is denied and not Never.
	RetryAfter time.Duration
	// ResetAfter is the time until the key has all permits again.
	ResetAfter time.Duration
}

// Limiter decides about permits by key. It replaces a key of more than 200 bytes by the first half
// of its SHA-256. Clients often choose keys, and every key takes memory. A Limiter is safe for many
// goroutines.
type Limiter struct {
	gate   *gate.Gate
	rule   *rules.Compiled
	store  Store
	prefix string
	params atomic.Pointer[core.Params]
}

// New makes a limiter. The error names the invalid field of the limit or of an option.
func New(store Store, limit Limit, options ...Option) (*Limiter, error) {
	if err := store.check(); err != nil {
		return nil, err
	}
	change, params, err := limit.compile(store)
	if err != nil {
		return nil, err
	}
	s := settings{name: "limiter", prefix: "ratelimit:", onError: rules.OnErrorClosed}
	for _, option := range options {
		option(&s)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	if store.client != nil {
		s.now = nil // Redis' clock decides
	}
	book, err := s.rulebook(store, change)
	if err != nil {
		return nil, err
	}
	l := &Limiter{store: store, prefix: s.prefix}
	if l.rule, err = book.Find(s.name); err != nil {
		return nil, err
	}
	// Any other client may have several servers, and sends a call to the one of its first key.
	_, single := store.client.(*redis.Client)
	l.gate = gate.New(book, redislimit.New(store.client, nil), gate.Options{
		Deadline: s.timeout, Waiters: int64(s.waiters), Cluster: !single, Now: s.now,
		Nodes: func() int { return s.processes },
	})
	l.params.Store(&params)
	return l, nil
}

// rulebook has the limiter's only rule.
func (s settings) rulebook(store Store, change rules.Change) (*rules.Rulebook, error) {
	scope := rules.ScopeGlobal
	if store.client == nil {
		scope = rules.ScopeNode
	}
	return rules.New(rules.Rule{
		Name: s.name, Change: change, Scope: scope, OnError: s.onError, Leases: int64(s.leases),
	})
}

// SetLimit changes the limit of all keys from now on. Permits that were taken stay taken, unless
// the algorithm changes. Above 100 Permits SlidingWindow is another one. Other processes keep their
// limit.
func (l *Limiter) SetLimit(limit Limit) error {
	_, params, err := limit.compile(l.store)
	if err == nil {
		l.params.Store(&params)
	}
	return err
}

// Allow takes n permits of a key if they are good now. Errors are ErrPermits, ErrUnavailable and
// the context's.
func (l *Limiter) Allow(ctx context.Context, key string, n int) (Decision, error) {
	res, err := l.take(ctx, key, n, 0)
	if err != nil {
		return Decision{}, err
	}
	return decisionOf(res.Decision), nil
}

// Reserve takes n permits of a key, also such that are good only after a wait. The wait is at most
// the limit's MaxWait, and ends before ctx does. Use the reservation after Reservation.Wait, or
// give it back with Cancel. Errors are those of Allow.
func (l *Limiter) Reserve(ctx context.Context, key string, n int) (*Reservation, error) {
	return reservationOf(l.take(ctx, key, n, l.params.Load().MaxWait()))
}

// ReserveNow is Reserve without a wait: it takes permits that are good now, as Allow does, and
// Cancel can give them back.
func (l *Limiter) ReserveNow(ctx context.Context, key string, n int) (*Reservation, error) {
	return reservationOf(l.take(ctx, key, n, 0))
}

// Wait takes n permits of a key and returns when they are good. Errors are those of Allow, and
// ErrLimited at once if the permits cannot be good within the limit's MaxWait and before ctx ends.
func (l *Limiter) Wait(ctx context.Context, key string, n int) error {
	r, err := l.Reserve(ctx, key, n)
	if err != nil {
		return err
	}
	return r.Wait(ctx)
}

// Peek returns how many permits a key has without a wait, and when it has all. It takes none.
// Allowed means that one permit is available. Errors are those of Allow.
func (l *Limiter) Peek(ctx context.Context, key string) (Decision, error) {
	d, err := l.gate.Peek(ctx, l.rule, l.request(key, 1, 0))
	switch {
	case ctx.Err() != nil:
		return Decision{}, fmt.Errorf("ratelimit: peek: %w", ctx.Err())
	case err != nil:
		return Decision{}, unavailable(err)
	}
	return decisionOf(d), nil
}

// Close waits for the calls to Redis in flight. Call it after the last decision.
func (l *Limiter) Close() { l.gate.Close() }

// maxKey bounds a key, in bytes without the prefix.
const maxKey = 200

// request asks for n permits of a key. In Redis each kind of limit that cannot read another one's
// state has keys of its own: while processes differ in the algorithm, each would else drop what the
// others count.
func (l *Limiter) request(key string, n int, maxWait time.Duration) core.Request {
	if len(key) > maxKey {
		key = rules.HashKey(key)
	}
	params := *l.params.Load()
	switch {
	case l.store.client == nil: // the store is this limiter's alone
	case params.Kind.Accumulates():
		key = l.prefix + key
	default:
		key = l.prefix + "-" + string(params.Kind) + ":" + key
	}
	return core.Request{Key: key, Params: params, N: int64(n), MaxWait: maxWait}
}

// take asks for n permits that are good within maxWait.
func (l *Limiter) take(
	ctx context.Context, key string, n int, maxWait time.Duration,
) (gate.Result, error) {
	if err := ctx.Err(); err != nil {
		return gate.Result{}, fmt.Errorf("ratelimit: take: %w", err)
	}
	res, err := l.gate.Take(ctx, l.rule, l.request(key, n, maxWait))
	if err == nil && res.Unavailable {
		err = unavailable(res.Cause)
	}
	return res, err
}

// unavailable has the text of the cause alone, which may be a deadline that is not the caller's.
func unavailable(cause error) error { return fmt.Errorf("%w: %s", ErrUnavailable, cause.Error()) }

func reservationOf(res gate.Result, err error) (*Reservation, error) {
	if err != nil {
		return nil, err
	}
	r := &Reservation{Decision: decisionOf(res.Decision), result: res}
	if r.Delay > 0 {
		r.goodAt = time.Now().Add(r.Delay)
	}
	return r, nil
}

func decisionOf(d core.Decision) Decision {
	return Decision{
		Allowed: d.Allowed, Never: d.Never, Delay: d.Wait,
		Remaining:  int(min(d.Remaining, math.MaxInt)),
		RetryAfter: d.RetryAfter, ResetAfter: d.ResetAfter,
	}
}
