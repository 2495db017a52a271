package gate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/rules"
)

// ErrLimited means that the permits are not available: the rule denied them, or too many callers
// wait already.
var ErrLimited = errors.New("ratelimit: limited")

// ErrDraining means that the node stops and keeps no caller waiting. Another node may admit it.
var ErrDraining = errors.New("ratelimit: the node is stopping")

// Result is a decision of a rule.
type Result struct {
	// Decision of the limiter. A dry run always allows, without a wait.
	ratelimit.Decision
	// Unavailable: Redis did not decide, and the rule's onError is closed. Answer
	// 503 and not 429.
	Unavailable bool
	// Cause is why Redis did not decide; nil unless Unavailable.
	Cause error
	// Degraded: Redis did not decide in time, so the rule's onError applied.
	Degraded bool
	// Rule that decided.
	Rule *rules.Compiled
	// DryRun: without dryRun the rule would have denied or delayed the request.
	DryRun bool

	gate    *Gate
	request ratelimit.Request
	shared  bool               // the permits were taken from the shared store
	untaken bool               // none were taken: a dry run admitted what the rule denied
	debt    *ratelimit.Request // of a degraded admission: the request to Redis
}

// Wait waits until the permits are good, without a lock. On an error it refunds them: ErrLimited if
// too many callers wait already, ErrDraining after Gate.Drain, or ctx's error.
func (r *Result) Wait(ctx context.Context) error {
	if !r.Allowed {
		return ErrLimited
	}
	if r.Decision.Wait <= 0 {
		return nil
	}
	defer r.gate.waiters.Add(-1)
	if r.gate.waiters.Add(1) > r.gate.opts.Waiters {
		r.Refund()
		r.RetryAfter = r.Decision.Wait
		r.Allowed, r.Granted, r.Decision.Wait = false, 0, 0
		r.gate.opts.Count(r.Rule.Name, EventDenied)
		return ErrLimited
	}
	if err := r.sleep(ctx); err != nil {
		r.Refund()
		return err
	}
	r.gate.opts.Count(r.Rule.Name, EventWaited)
	return nil
}

// sleep waits until the permits are good, the caller leaves or the gate drains.
func (r *Result) sleep(ctx context.Context) error {
	t := time.NewTimer(r.Decision.Wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-r.gate.draining:
		return ErrDraining
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("ratelimit: wait: %w", err)
	}
	return nil
}

// WaitAll waits until the permits of all results are good. On an error it refunds all of them and
// also returns the result that failed. Errors are those of Result.Wait.
func WaitAll(ctx context.Context, results []Result) (*Result, error) {
	var longest *Result
	for i := range results {
		if longest == nil || results[i].Decision.Wait > longest.Decision.Wait {
			longest = &results[i]
		}
	}
	if longest == nil {
		return nil, nil
	}
	if err := longest.Wait(ctx); err != nil {
		for i := range results {
			if &results[i] != longest {
				results[i].Refund()
			}
		}
		return longest, err
	}
	return longest, nil
}

// Refund returns unused permits. It does not wait for Redis. Call it at most once.
func (r *Result) Refund() {
	if !r.Allowed || r.untaken || r.request.N == 0 {
		return
	}
	if r.shared {
		g, req, d := r.gate, r.request, r.Decision // copies, so that the Result stays off the heap
		g.running.Go(func() { g.refundUnused(req, d) })
		return
	}
	// The request was taken, so it is well formed, and Memory has no other error.
	_ = r.gate.memory.Refund(context.Background(), r.Decision, r.request)
	if r.debt != nil {
		r.gate.addDebt(*r.debt, -r.debt.N)
	}
}

// AppendHeaders appends an item to the values of RateLimit and RateLimit-Policy, as
// draft-ietf-httpapi-ratelimit-headers-11 defines them. It appends nothing when the rule let the
// request pass without a limit. It appends no item to RateLimit when nothing has counted the
// permits, because Redis did not decide. A denial's t is not before its Retry-After. A policy has
// no w for a window of less than a second, which whole seconds cannot express.
func (r *Result) AppendHeaders(limit, policy []byte) (newLimit, newPolicy []byte) {
	if r.request.N == 0 {
		return limit, policy
	}
	if !r.Degraded || r.Rule.OnError == rules.OnErrorLocal {
		reset := ceilSeconds(r.ResetAfter)
		if !r.Allowed {
			reset = max(1, reset, ceilSeconds(r.RetryAfter))
		}
		limit = appendItem(limit, r.Rule.Name, ";r=", r.Remaining)
		limit = strconv.AppendInt(append(limit, ";t="...), reset, 10)
	}
	quota, window := r.request.Params.Quota()
	policy = appendItem(policy, r.Rule.Name, ";q=", quota)
	if window >= time.Second {
		policy = strconv.AppendInt(append(policy, ";w="...), ceilSeconds(window), 10)
	}
	return limit, policy
}

// appendItem appends an item with a parameter to a list of a header.
func appendItem(list []byte, rule, parameter string, n int64) []byte {
	if len(list) > 0 {
		list = append(list, ", "...)
	}
	return strconv.AppendInt(append(strconv.AppendQuote(list, rule), parameter...), n, 10)
}

// RetryAfter is the value of the header Retry-After: whole seconds, rounded up and at least 1. The
// header has no fractions, and a client that waits 0 s would be refused again.
func RetryAfter(d time.Duration) string { return strconv.FormatInt(max(1, ceilSeconds(d)), 10) }

func ceilSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
