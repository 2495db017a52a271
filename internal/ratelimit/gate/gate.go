package gate

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/rules"
)

// Gate decides requests by the rules of a rulebook. It is safe for many
// goroutines. Close it after the last decision.
type Gate struct {
	book    *rules.Rulebook
	shared  Store             // limiters of scope global
	memory  *ratelimit.Memory // limiters of scope node, and the node's share of others
	opts    Options
	keys    *keyTable
	batcher *callBatcher

	waiters atomic.Int64   // callers that sleep in Result.Wait
	running sync.WaitGroup // calls and refunds in flight

	draining  chan struct{} // closed by Drain
	drainOnce sync.Once

	mu     sync.Mutex
	params map[ratelimit.Limit]*ratelimit.Params // see paramsOf
}

// New makes a gate over the store that all nodes share. The client behind the
// store must honour contexts (go-redis: ContextTimeoutEnabled) and not retry.
func New(book *rules.Rulebook, shared Store, opts Options) *Gate {
	memory := ratelimit.NewMemory(opts.Now)
	opts = opts.withDefaults()
	return &Gate{
		book: book, shared: shared, memory: memory, opts: opts, keys: newKeyTable(opts.MaxKeys),
		params: map[ratelimit.Limit]*ratelimit.Params{}, batcher: newBatcher(shared, opts),
		draining: make(chan struct{}),
	}
}

// Drain ends all waits for permits with ErrDraining, also those that begin later. A node that stops
// calls it, because a wait may be longer than the time that the node has left.
func (g *Gate) Drain() { g.drainOnce.Do(func() { close(g.draining) }) }

// Close waits for calls and refunds in flight. Each has a deadline.
func (g *Gate) Close() { g.running.Wait() }

// Check is one rule that a request must pass.
type Check struct {
	Rule string
	// Own is the request's own limit in place of the rule's, such as a sale's own rate; nil
	// if it has none. An operator's limit for the key takes precedence over it.
	Own *ratelimit.Limit
}

// DecideAll checks several rules in order. Put rules of scope node first, because they cost no
// call. At the first denial it refunds the permits of the rules before and returns that Result
// alone. Otherwise all results are allowed, one for each check; wait for them with WaitAll. Errors
// are those of Decide.
func (g *Gate) DecideAll(
	ctx context.Context, attrs rules.Attributes, checks ...Check,
) ([]Result, error) {
	passed := make([]Result, 0, len(checks))
	for _, check := range checks {
		res, err := g.Decide(ctx, attrs, check)
		if err == nil && res.Allowed {
			passed = append(passed, res)
			continue
		}
		for i := range passed {
			passed[i].Refund()
		}
		if err != nil {
			return nil, err
		}
		return []Result{res}, nil
	}
	return passed, nil
}

// Decide takes one permit of a rule. It returns within Options.Deadline.
//
// The error is rules.ErrNoRule, a *ratelimit.FieldError of the own limit, or ctx's error. A denial
// is no error, and neither is a failure of Redis. The Result reports both.
func (g *Gate) Decide(
	ctx context.Context, attrs rules.Attributes, check Check,
) (res Result, err error) {
	rule, err := g.book.Find(check.Rule)
	if err != nil {
		return Result{}, err
	}
	own, err := g.paramsOf(check.Own)
	if err != nil {
		return Result{}, err
	}
	key, ok := rule.Key(&attrs)
	if !ok {
		switch rule.OnMissingKey {
		case rules.OnMissingSkip:
			res.Decision = ratelimit.Decision{Allowed: true, Granted: 1}
			g.finish(rule, &res)
			return res, nil
		case rules.OnMissingDeny:
			res.Never = true
			g.finish(rule, &res)
			return res, nil
		}
		key = rules.SharedKey
	}
	rule.Request(&res.request, key, g.book.Params(rule, key, own))
	err = g.decide(ctx, rule, &res)
	return res, err
}

// Take decides a request for a limiter that the caller names. The rule has its scope, leases,
// onError and dryRun, and the request has the limit. Take lowers the request's MaxWait to the time
// that ctx has left, as Decide does. Errors are ratelimit.ErrPermits and ctx's error.
func (g *Gate) Take(
	ctx context.Context, rule *rules.Compiled, req ratelimit.Request,
) (Result, error) {
	res := Result{request: req}
	err := g.decide(ctx, rule, &res)
	return res, err
}

// decide decides the request of a result, which is large and would otherwise be copied several
// times.
func (g *Gate) decide(ctx context.Context, rule *rules.Compiled, res *Result) error {
	req := &res.request
	if err := req.Validate(); err != nil {
		*res = Result{}
		return err
	}
	req.MaxWait = min(req.MaxWait, g.maxWait(ctx, &req.Params))
	res.gate = g
	g.take(ctx, rule, res)
	if err := ctx.Err(); err != nil && res.Degraded {
		if res.debt != nil { // the caller no longer waits and does not use the permit
			res.Refund()
		}
		*res = Result{}
		return fmt.Errorf("ratelimit: decide: %w", err)
	}
	g.finish(rule, res)
	return nil
}

// Peek returns the permits that a limiter has without a wait, and when it is full. It takes none.
// Permits that nodes hold in advance count as taken. It returns within Options.Deadline. If Redis
// does not answer, it reads this node's share where the rule's onError is local. Other rules have
// an error then.
func (g *Gate) Peek(
	ctx context.Context, rule *rules.Compiled, req ratelimit.Request,
) (ratelimit.Decision, error) {
	d, err := g.peek(ctx, rule, req)
	if err == nil || ctx.Err() != nil || rule.OnError != rules.OnErrorLocal {
		return d, err
	}
	if req.N = 1; !g.mayOwe(&req) {
		return ratelimit.Decision{}, nil
	}
	res := Result{request: unlimited(req)}
	g.takeShare(&res)
	return res.asRead(), nil
}

// peek is Peek where Redis answers.
func (g *Gate) peek(
	ctx context.Context, rule *rules.Compiled, req ratelimit.Request,
) (ratelimit.Decision, error) {
	res := Result{request: unlimited(req)}
	if rule.Scope == rules.ScopeNode || !req.Params.InRedis() {
		g.takeLocal(&res)
		return res.asRead(), nil
	}
	timer := time.NewTimer(g.opts.Deadline)
	defer timer.Stop()
	d, err := g.takeDirect(ctx, rule, res.request, timer.C)
	if err != nil {
		return ratelimit.Decision{}, err
	}
	res.Decision = d
	return res.asRead(), nil
}

// unlimited asks for so many permits that no limiter ever grants them, so nothing changes.
func unlimited(req ratelimit.Request) ratelimit.Request {
	req.N, req.Min = req.Params.MaxPermits+1, 0
	return req
}

// asRead is the denial of such a request as the state of the limiter. Allowed means that one permit
// would be: smooth_bursty lends it to a limiter that owes nothing.
func (r *Result) asRead() ratelimit.Decision {
	d := r.Decision
	d.Never, d.Allowed = false, d.Remaining > 0
	if r.request.Params.Kind == ratelimit.KindBursty {
		_, empty := r.request.Params.Quota()
		d.Allowed = d.ResetAfter <= empty
	}
	return d
}

// maxCachedLimits bounds the cache of paramsOf. Sales have few distinct rates.
const maxCachedLimits = 1000

// paramsOf caches Limit.Params, which computes with big numbers.
func (g *Gate) paramsOf(limit *ratelimit.Limit) (*ratelimit.Params, error) {
	if limit == nil {
		return nil, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if p, ok := g.params[*limit]; ok {
		return p, nil
	}
	p, err := limit.Params()
	if err != nil {
		return nil, err
	}
	if len(g.params) >= maxCachedLimits {
		clear(g.params)
	}
	g.params[*limit] = &p
	return &p, nil
}

// maxWait is how long this caller can wait: at most until its deadline. It is 0 if Options.Waiters
// callers wait already.
func (g *Gate) maxWait(ctx context.Context, p *ratelimit.Params) time.Duration {
	if g.waiters.Load() >= g.opts.Waiters {
		return 0
	}
	longest := p.MaxWait()
	if deadline, ok := ctx.Deadline(); ok {
		if left := time.Until(deadline); left < longest {
			// Rounded, so that equal deadlines share one entry of the denial cache.
			longest = max(0, left.Truncate(10*time.Millisecond))
		}
	}
	return longest
}

// finish counts the result, and turns the denial of a dry run into an admission.
func (g *Gate) finish(rule *rules.Compiled, r *Result) {
	r.Rule, r.gate = rule, g
	if rule.DryRun && (!r.Allowed || r.Decision.Wait > 0) {
		g.opts.Count(rule.Name, EventDryRun)
		r.DryRun, r.untaken, r.Unavailable, r.Cause = true, !r.Allowed, false, nil
		r.Allowed, r.Never, r.Granted, r.Decision.Wait = true, false, r.request.N, 0
	}
	if !r.Allowed {
		g.opts.Count(rule.Name, EventDenied)
		return
	}
	g.opts.Count(rule.Name, EventAllowed)
	if r.nearLimit() {
		g.opts.Count(rule.Name, EventNearLimit)
	}
}

// nearLimit reports whether less than a fifth of the permits is left. A limiter that lacks none has
// not decided: the rule was skipped or open.
func (r *Result) nearLimit() bool {
	if r.DryRun || r.ResetAfter <= 0 {
		return false
	}
	quota, _ := r.request.Params.Quota()
	return r.Remaining < (quota+4)/5
}
