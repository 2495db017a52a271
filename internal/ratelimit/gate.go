package ratelimit

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Gate is what a request meets. It answers what it can by itself and asks the
// store for the rest, merged, within a deadline. Safe for many goroutines.
type Gate struct {
	book    *Rulebook
	shared  Store
	memory  *Memory
	opts    GateOptions
	keys    *keyTable
	courier *courier

	waiters atomic.Int64
	running sync.WaitGroup // flights and refunds

	mu     sync.Mutex
	limits map[Limit]Terms
}

// NewGate makes a gate over the store that all nodes share. The client behind
// it must honour contexts (go-redis: ContextTimeoutEnabled) and not retry.
func NewGate(book *Rulebook, shared Store, opts GateOptions) *Gate {
	memory := NewMemory(opts.Now)
	opts = opts.withDefaults()
	return &Gate{
		book: book, shared: shared, memory: memory, opts: opts, keys: newKeyTable(), limits: map[Limit]Terms{},
		courier: newCourier(shared, opts),
	}
}

// Close waits for refunds and trips that are under way; each has a deadline.
func (g *Gate) Close() { g.running.Wait() }

// Decide asks a rule for n permits. It returns within the deadline. The error
// is a mistake of the caller's, ErrNoRule or ErrPermits, or its context's. What the buyer is to be
// told, Redis' troubles too, is in the Outcome.
func (g *Gate) Decide(ctx context.Context, rule string, attrs Attributes, n int64) (Outcome, error) {
	return g.decide(ctx, rule, attrs, nil, n)
}

// DecideWith is Decide with a limit of the caller's, a sale's own rate, in
// place of the rule's. What an operator has set for the key comes before it.
func (g *Gate) DecideWith(ctx context.Context, rule string, attrs Attributes, limit Limit, n int64) (Outcome, error) {
	terms, err := g.termsOf(limit)
	if err != nil {
		return Outcome{}, err
	}
	return g.decide(ctx, rule, attrs, &terms, n)
}

// termsOf remembers what limits come to: there are few, and the check is not free.
func (g *Gate) termsOf(limit Limit) (Terms, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t, ok := g.limits[limit]; ok {
		return t, nil
	}
	t, err := limit.Terms()
	if err != nil {
		return Terms{}, err
	}
	if len(g.limits) >= 1000 {
		clear(g.limits)
	}
	g.limits[limit] = t
	return t, nil
}

func (g *Gate) decide(ctx context.Context, name string, attrs Attributes, own *Terms, n int64) (Outcome, error) {
	rule, err := g.book.find(name)
	if err != nil {
		return Outcome{}, err
	}
	if n < 1 {
		return Outcome{}, ErrPermits
	}
	key, ok := rule.key(attrs)
	if !ok {
		switch rule.OnMissingKey {
		case OnMissingSkip:
			return g.tell(rule, Outcome{Decision: Decision{Allowed: true, Granted: n}}), nil
		case OnMissingDeny:
			return g.tell(rule, Outcome{Decision: Decision{Never: true}}), nil
		}
		key = sharedKey
	}
	terms := g.book.terms(rule, key, own)
	ask := Ask{Key: rule.redisKey(key), Terms: terms, N: n, MaxWait: g.longest(ctx, terms)}
	out := g.take(ctx, rule, ask)
	if err := ctx.Err(); err != nil && out.Undecided {
		if out.alone != nil { // its caller has left
			out.Refund()
		}
		return Outcome{}, fmt.Errorf("ratelimit: decide: %w", err)
	}
	return g.tell(rule, out), nil
}

// longest is how long this caller can wait: not beyond its deadline, and not at
// all when enough others wait already.
func (g *Gate) longest(ctx context.Context, t Terms) time.Duration {
	if g.waiters.Load() >= g.opts.Waiters {
		return 0
	}
	longest := t.longestWait()
	if deadline, ok := ctx.Deadline(); ok {
		if left := time.Until(deadline); left < longest {
			longest = max(0, left.Truncate(10*time.Millisecond))
		}
	}
	return longest
}

// longestWait is what the limit itself allows.
func (t Terms) longestWait() time.Duration {
	switch t.kind {
	case kindBucket, kindBursty:
		return micros(ceilDiv(t.cap-t.free, t.scale))
	case kindLocal:
		return time.Duration(t.limit.MaxWaitMillis) * time.Millisecond
	}
	return 0
}

// take decides by the node's memory or by Redis, or by onError.
func (g *Gate) take(ctx context.Context, rule *compiled, a Ask) Outcome {
	if rule.Scope == ScopeNode || !a.Terms.InRedis() {
		return g.takeHere(a)
	}
	d, err := g.takeShared(ctx, rule, a)
	if err == nil {
		return Outcome{Decision: d, ask: a, gate: g, shared: true}
	}
	g.opts.Meter.Count(rule.Name, EventError)
	switch rule.OnError {
	case OnErrorOpen:
		return Outcome{Decision: Decision{Allowed: true, Granted: a.N}, Undecided: true, ask: a}
	case OnErrorLocal:
		return g.takeAlone(a)
	}
	return Outcome{Decision: Decision{RetryAfter: time.Second}, Undecided: true, Unavailable: true, ask: a}
}

// takeAlone decides by this node's share of the limit, and owes Redis what it lets through.
func (g *Gate) takeAlone(a Ask) Outcome {
	part := a
	part.Terms, part.Key = a.Terms.share(int64(g.opts.Nodes())), alone+a.Key
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
func (g *Gate) owe(a Ask, n int64) {
	now := g.opts.Now()
	g.keys.with(a.Key, now, func(k *keyState) {
		k.use(a.Terms)
		k.owe(now, n, int64(g.opts.Nodes()))
	})
}

func (g *Gate) takeHere(a Ask) Outcome {
	decisions, err := g.memory.TakeEach(context.Background(), []Ask{a})
	if err != nil { // only a malformed ask, and this one has been checked
		return Outcome{Unavailable: true, ask: a}
	}
	return Outcome{Decision: decisions[0], ask: a, gate: g}
}

// share is a node's part of a limit: the rate divided, and at least one permit.
func (t Terms) share(nodes int64) Terms {
	nodes = max(1, min(nodes, 1000))
	switch t.kind {
	case kindBucket, kindBursty:
		t.cost = min(product(t.cost, nodes), maxTicks)
		if t.kind == kindBucket {
			t.free = max(t.free, t.cost)
		}
		t.cap = max(t.cap, t.free)
		t.most = max(1, t.most/nodes)
	case kindFixed, kindSliding:
		t.free = max(1, t.free/nodes)
		t.cap, t.most = t.free, t.free
	}
	return t
}

// tell counts the outcome and makes a dry run let pass.
func (g *Gate) tell(rule *compiled, o Outcome) Outcome {
	o.rule, o.gate = rule, g
	if rule.DryRun && (!o.Allowed || o.Decision.Wait > 0) {
		g.opts.Meter.Count(rule.Name, EventDryRun)
		o.DryRun, o.Unavailable = true, false
		o.Allowed, o.Never, o.Granted, o.Decision.Wait = true, false, o.ask.N, 0
	}
	event := EventDenied
	if o.Allowed {
		event = EventAllowed
	}
	g.opts.Meter.Count(rule.Name, event)
	return o
}
