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

// Gate is what a request meets. It answers what it can by itself and asks the
// store for the rest, merged, within a deadline. Safe for many goroutines.
type Gate struct {
	book    *rules.Rulebook
	shared  Store
	memory  *ratelimit.Memory
	opts    Options
	keys    *keyTable
	courier *courier

	waiters atomic.Int64
	running sync.WaitGroup // flights and refunds

	mu     sync.Mutex
	limits map[ratelimit.Limit]ratelimit.Terms
}

// New makes a gate over the store that all nodes share. The client behind
// it must honour contexts (go-redis: ContextTimeoutEnabled) and not retry.
func New(book *rules.Rulebook, shared Store, opts Options) *Gate {
	memory := ratelimit.NewMemory(opts.Now)
	opts = opts.withDefaults()
	return &Gate{
		book: book, shared: shared, memory: memory, opts: opts, keys: newKeyTable(), limits: map[ratelimit.Limit]ratelimit.Terms{},
		courier: newCourier(shared, opts),
	}
}

// Close waits for refunds and trips that are under way; each has a deadline.
func (g *Gate) Close() { g.running.Wait() }

// Decide asks a rule for n permits. It returns within the deadline. The error
// is a mistake of the caller's, ErrNoRule or ErrPermits, or its context's. What the buyer is to be
// told, Redis' troubles too, is in the Result.
func (g *Gate) Decide(ctx context.Context, rule string, attrs rules.Attributes, n int64) (Result, error) {
	return g.decide(ctx, rule, attrs, nil, n)
}

// DecideWith is Decide with a limit of the caller's, a sale's own rate, in
// place of the rule's. What an operator has set for the key comes before it.
func (g *Gate) DecideWith(ctx context.Context, rule string, attrs rules.Attributes, limit ratelimit.Limit, n int64) (Result, error) {
	terms, err := g.termsOf(limit)
	if err != nil {
		return Result{}, err
	}
	return g.decide(ctx, rule, attrs, &terms, n)
}

// termsOf remembers what limits come to: there are few, and the check is not free.
func (g *Gate) termsOf(limit ratelimit.Limit) (ratelimit.Terms, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t, ok := g.limits[limit]; ok {
		return t, nil
	}
	t, err := limit.Terms()
	if err != nil {
		return ratelimit.Terms{}, err
	}
	if len(g.limits) >= 1000 {
		clear(g.limits)
	}
	g.limits[limit] = t
	return t, nil
}

func (g *Gate) decide(ctx context.Context, name string, attrs rules.Attributes, own *ratelimit.Terms, n int64) (Result, error) {
	rule, err := g.book.Find(name)
	if err != nil {
		return Result{}, err
	}
	if n < 1 {
		return Result{}, ratelimit.ErrPermits
	}
	key, ok := rule.Key(attrs)
	if !ok {
		switch rule.OnMissingKey {
		case rules.OnMissingSkip:
			return g.tell(rule, Result{Decision: ratelimit.Decision{Allowed: true, Granted: n}}), nil
		case rules.OnMissingDeny:
			return g.tell(rule, Result{Decision: ratelimit.Decision{Never: true}}), nil
		}
		key = rules.SharedKey
	}
	terms := g.book.Terms(rule, key, own)
	ask := ratelimit.Ask{Key: rule.RedisKey(key), Terms: terms, N: n, MaxWait: g.longest(ctx, terms)}
	out := g.take(ctx, rule, ask)
	if err := ctx.Err(); err != nil && out.Undecided {
		if out.alone != nil { // its caller has left
			out.Refund()
		}
		return Result{}, fmt.Errorf("ratelimit: decide: %w", err)
	}
	return g.tell(rule, out), nil
}

// longest is how long this caller can wait: not beyond its deadline, and not at
// all when enough others wait already.
func (g *Gate) longest(ctx context.Context, t ratelimit.Terms) time.Duration {
	if g.waiters.Load() >= g.opts.Waiters {
		return 0
	}
	longest := t.LongestWait()
	if deadline, ok := ctx.Deadline(); ok {
		if left := time.Until(deadline); left < longest {
			longest = max(0, left.Truncate(10*time.Millisecond))
		}
	}
	return longest
}

// take decides by the node's memory or by Redis, or by onError.
func (g *Gate) take(ctx context.Context, rule *rules.Compiled, a ratelimit.Ask) Result {
	if rule.Scope == rules.ScopeNode || !a.Terms.InRedis() {
		return g.takeHere(a)
	}
	d, err := g.takeShared(ctx, rule, a)
	if err == nil {
		return Result{Decision: d, ask: a, gate: g, shared: true}
	}
	g.opts.Metrics.Count(rule.Name, EventError)
	switch rule.OnError {
	case rules.OnErrorOpen:
		return Result{Decision: ratelimit.Decision{Allowed: true, Granted: a.N}, Undecided: true, ask: a}
	case rules.OnErrorLocal:
		return g.takeAlone(a)
	}
	return Result{Decision: ratelimit.Decision{RetryAfter: time.Second}, Undecided: true, Unavailable: true, ask: a}
}

// takeAlone decides by this node's share of the limit, and owes Redis what it lets through.
func (g *Gate) takeAlone(a ratelimit.Ask) Result {
	part := a
	part.Terms, part.Key = a.Terms.Share(int64(g.opts.Nodes())), alone+a.Key
	out := g.takeHere(part)
	out.Undecided = true
	if out.Allowed {
		out.alone = &a
		g.owe(a, a.N)
	}
	return out
}

// alone begins the keys of what a node decides alone.
const alone = "local:"

// owe has the node take so many permits of what Redis gives next for those that it gave alone, or so many fewer.
func (g *Gate) owe(a ratelimit.Ask, n int64) {
	now := g.opts.Now()
	g.keys.with(a.Key, now, func(k *keyState) {
		k.use(a.Terms)
		k.owe(now, n, int64(g.opts.Nodes()))
	})
}

func (g *Gate) takeHere(a ratelimit.Ask) Result {
	decisions, err := g.memory.TakeEach(context.Background(), []ratelimit.Ask{a})
	if err != nil { // only a malformed ask, and this one has been checked
		return Result{Unavailable: true, ask: a}
	}
	return Result{Decision: decisions[0], ask: a, gate: g}
}

// tell counts the outcome and makes a dry run let pass.
func (g *Gate) tell(rule *rules.Compiled, o Result) Result {
	o.rule, o.gate = rule, g
	if rule.DryRun && (!o.Allowed || o.Decision.Wait > 0) {
		g.opts.Metrics.Count(rule.Name, EventDryRun)
		o.DryRun, o.Unavailable = true, false
		o.Allowed, o.Never, o.Granted, o.Decision.Wait = true, false, o.ask.N, 0
	}
	event := EventDenied
	if o.Allowed {
		event = EventAllowed
	}
	g.opts.Metrics.Count(rule.Name, event)
	return o
}
