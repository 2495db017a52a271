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
func (g *Gate) take(ctx context.Context, rule *rules.Compiled, res *Result) {
	req := &res.request
	if rule.Scope == rules.ScopeNode || !req.Params.InRedis() {
		g.takeLocal(res)
		return
	}
	err := g.takeShared(ctx, rule, req, &res.Decision)
	if err == nil {
		res.shared = true
		return
	}
	if errors.Is(err, errManyKeys) {
		g.opts.Count(rule.Name, EventManyKeys)
		g.takeShare(res)
		return
	}
	if ctx.Err() == nil { // else the caller has left, which is no fault of Redis
		g.opts.Count(rule.Name, EventError)
	}
	res.Degraded = true
	switch rule.OnError {
	case rules.OnErrorOpen:
		res.Decision = ratelimit.Decision{Allowed: true, Granted: req.N}
	case rules.OnErrorLocal:
		g.takeDegraded(res)
	case rules.OnErrorClosed:
		res.RetryAfter, res.Unavailable, res.Cause = time.Second, true, err
	}
}

// takeLocal decides in this node's memory.
func (g *Gate) takeLocal(res *Result) {
	if err := g.memory.Take(&res.request, &res.Decision); err != nil {
		// Only a malformed request fails, and this one was checked.
		res.Unavailable, res.Cause = true, err
	}
}

// takeDegraded decides by this node's share of the limit: all nodes together admit the limit, or
// one permit each if that is more. Admitted permits are a debt, because Redis has not counted them
// yet. A node that owes as much as it may denies until Redis has answered it. A window has no debt,
// because its permits are soon void. So up to twice the limit passes in a window in which Redis
// fails.
func (g *Gate) takeDegraded(res *Result) {
	req := res.request
	if !g.mayOwe(&req) {
		res.RetryAfter = probeInterval
		return
	}
	g.takeShare(res)
	if res.Allowed {
		debt := req // the address of req itself would put each request on the heap
		res.debt = &debt
		g.addDebt(req, req.N)
	}
}

// mayOwe reports whether this node may admit a request without Redis.
func (g *Gate) mayOwe(req *ratelimit.Request) (may bool) {
	may = true
	g.keys.update(req.Key, func(k *keyState) {
		may = k.mayOwe(g.opts.Now(), req.N, g.nodes())
	})
	return may
}

// takeShare decides in this node's memory by its share of the limit. A request that is larger than
// the share alone may pass as soon as Redis decides.
func (g *Gate) takeShare(res *Result) {
	req := &res.request
	largest := req.Params.LargestRequest(req.MaxWait)
	req.Space, req.Params = degradedSpace, req.Params.Share(g.nodes())
	g.takeLocal(res)
	if res.Never && req.N <= largest {
		res.Never, res.RetryAfter = false, probeInterval
	}
}

// addDebt adds n permits to the debt of a key; a negative n subtracts them.
func (g *Gate) addDebt(req ratelimit.Request, n int64) {
	now := g.opts.Now()
	g.keys.with(req.Key, now, func(k *keyState) {
		k.setParams(&req.Params)
		k.addDebt(now, n, g.nodes())
	})
}
