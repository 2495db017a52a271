package gate

import (
	"context"
	"errors"
	"time"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/rules"
)

// degradedSpace has the limiters by which a node decides without Redis. No rule has this name.
const degradedSpace = "local:"

// errManyKeys means that this node has as many limiters in Redis as it may.
var errManyKeys = errors.New("ratelimit: too many keys in redis")

// take decides in this node's memory or in Redis, by the rule's scope. If Redis does not decide in
// time, the rule's onError applies.
func (g *Gate) take(ctx context.Context, rule *rules.Compiled, req ratelimit.Request) Result {
	if rule.Scope == rules.ScopeNode || !req.Params.InRedis() {
		return g.takeLocal(req)
	}
	d, err := g.takeShared(ctx, rule, req)
	if err == nil {
		return Result{Decision: d, request: req, gate: g, shared: true}
	}
	if errors.Is(err, errManyKeys) {
		g.opts.Count(rule.Name, EventManyKeys)
		return g.takeShare(req)
	}
	g.opts.Count(rule.Name, EventError)
	switch rule.OnError {
	case rules.OnErrorOpen:
		allowed := ratelimit.Decision{Allowed: true, Granted: req.N}
		return Result{Decision: allowed, Degraded: true, request: req}
	case rules.OnErrorLocal:
		return g.takeDegraded(req)
	}
	denied := ratelimit.Decision{RetryAfter: time.Second}
	return Result{Decision: denied, Degraded: true, Unavailable: true, request: req}
}

// takeLocal decides in this node's memory.
func (g *Gate) takeLocal(req ratelimit.Request) Result {
	d, err := g.memory.Take(&req)
	if err != nil { // only a malformed request fails, and this one was checked
		return Result{Unavailable: true, request: req}
	}
	return Result{Decision: d, request: req, gate: g}
}

// takeDegraded decides by this node's share of the limit: all nodes together admit the limit, or one
// permit each if that is more. Admitted permits are a debt, because Redis has not counted them yet. A
// window has no debt, because its permits are soon void. So up to twice the limit passes in a window
// in which Redis fails.
func (g *Gate) takeDegraded(req ratelimit.Request) Result {
	r := g.takeShare(req)
	r.Degraded = true
	if r.Allowed {
		debt := req // the address of req itself would put each request on the heap
		r.debt = &debt
		g.addDebt(req, req.N)
	}
	return r
}

// takeShare decides in this node's memory by its share of the limit.
func (g *Gate) takeShare(req ratelimit.Request) Result {
	req.Space = degradedSpace
	req.Params = req.Params.Share(int64(g.opts.Nodes()))
	return g.takeLocal(req)
}

// addDebt adds n permits to the debt of a key; a negative n subtracts them.
func (g *Gate) addDebt(req ratelimit.Request, n int64) {
	now := g.opts.Now()
	g.keys.with(req.Key, now, func(k *keyState) {
		k.setParams(req.Params)
		k.addDebt(now, n, int64(g.opts.Nodes()))
	})
}
