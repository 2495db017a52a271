package gate

import (
	"context"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/rules"
)

// Credit returns the permits req.N of an earlier request whose Result is gone, and then reads the
// limiter. A limiter gets back no more than it lacks. A sliding log gets nothing back, because only
// a Result identifies its entries. Errors are ratelimit.ErrPermits and failures of the shared
// store, which gets Options.Deadline for each of its three steps.
func (g *Gate) Credit(
	ctx context.Context, rule *rules.Compiled, req ratelimit.Request,
) (ratelimit.Decision, error) {
	before, err := g.peek(ctx, rule, req)
	if err != nil {
		return ratelimit.Decision{}, err
	}
	if err := g.refund(ctx, g.storeOf(rule, req.Params), req, before); err != nil {
		return ratelimit.Decision{}, err
	}
	return g.peek(ctx, rule, req)
}

// storeOf is the store that has the rule's limiters.
func (g *Gate) storeOf(rule *rules.Compiled, params ratelimit.Params) Store {
	if rule.Scope == rules.ScopeNode || !params.InRedis() {
		return g.memory
	}
	return g.shared
}
