package gate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/rules"
)

// ErrLimited says that the permits can't be had: the rule denied them, or too
// many wait already.
var ErrLimited = errors.New("ratelimit: limited")

// Result is what a request is to be told.
type Result struct {
	// Decision of the limiter. In a dry run it is always Allowed, at once.
	ratelimit.Decision
	// Unavailable: not decided, and the rule is closed: 503 and not 429.
	Unavailable bool
	// Undecided: Redis did not answer in time, and the rule's onError did.
	Undecided bool
	// DryRun: the rule would have denied it or made it wait.
	DryRun bool

	rule   *rules.Compiled
	gate   *Gate
	ask    ratelimit.Ask
	shared bool
	alone  *ratelimit.Ask // what the node decided alone, as it was to be asked
}

// Rule names the rule that decided.
func (o *Result) Rule() string { return o.rule.Name }

// Message is the rule's own text for who is limited, or "".
func (o *Result) Message() string { return o.rule.Message }

// Fallback is the rule's own answer for who is limited, or nil.
func (o *Result) Fallback() *rules.Fallback { return o.rule.Fallback }

// Wait waits until the permits are good. When ctx ends first, or too many wait
// already (ErrLimited), the permits go back. It holds no lock.
func (o *Result) Wait(ctx context.Context) error {
	if !o.Allowed {
		return ErrLimited
	}
	if o.Decision.Wait <= 0 {
		return nil
	}
	defer o.gate.waiters.Add(-1)
	if o.gate.waiters.Add(1) > o.gate.opts.Waiters {
		o.Refund()
		o.denyLate()
		return ErrLimited
	}
	if err := sleepFor(ctx, o.Decision.Wait); err != nil {
		o.Refund()
		return fmt.Errorf("ratelimit: wait: %w", err)
	}
	o.gate.opts.Metrics.Count(o.rule.Name, EventWaited)
	return nil
}

// denyLate makes the outcome one of a denial.
func (o *Result) denyLate() {
	o.RetryAfter = o.Decision.Wait
	o.Allowed, o.Granted, o.Decision.Wait = false, 0, 0
	o.gate.opts.Metrics.Count(o.rule.Name, EventDenied)
}

// Refund gives the permits back, for a request that will not use them. It does
// not wait for Redis. Call it at most once.
func (o *Result) Refund() {
	if !o.Allowed || o.DryRun || o.ask.Key == "" {
		return
	}
	d, a := o.Decision, o.ask
	if !o.shared {
		_ = o.gate.memory.Refund(context.Background(), d.At, a) // it was taken, so it is well formed
		if o.alone != nil {
			o.gate.owe(*o.alone, -o.alone.N)
		}
		return
	}
	o.gate.running.Go(func() { o.gate.giveBack(a, d) })
}

// RetryAfterSeconds is the header Retry-After: rounded up, at least 1.
func (o *Result) RetryAfterSeconds() int64 { return max(1, ceilSeconds(o.RetryAfter)) }

// Headers are RateLimit and RateLimit-Policy as draft-ietf-httpapi-ratelimit-
// headers-10 has them; both empty when the rule let pass without limiting.
func (o *Result) Headers() (limit, policy string) {
	if o.ask.Key == "" {
		return "", ""
	}
	quota, window := o.ask.Terms.Quota()
	reset := o.ResetAfter
	if !o.Allowed {
		reset = max(reset, o.RetryAfter)
	}
	return fmt.Sprintf("%q;r=%d;t=%d", o.rule.Name, o.Remaining, ceilSeconds(reset)),
		fmt.Sprintf("%q;q=%d;w=%d", o.rule.Name, quota, max(1, ceilSeconds(window)))
}

func ceilSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

func sleepFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
