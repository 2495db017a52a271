package gate

import (
	"context"
	"time"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/rules"
)

// Credit returns n permits of an earlier request whose Result is gone, and then reads the limiter. A
// limiter gets back no more than it lacks. A sliding log gets nothing back, because only a Result
// identifies its entries. Errors are ratelimit.ErrPermits and failures of the shared store.
func (g *Gate) Credit(
	ctx context.Context, rule *rules.Compiled, key string, params ratelimit.Params, n int64,
) (ratelimit.Decision, error) {
	before, err := g.Peek(ctx, rule, key, params)
	if err != nil {
		return ratelimit.Decision{}, err
	}
	req := ratelimit.Request{Key: key, Params: params, N: n}
	if err := g.storeOf(rule, params).Refund(ctx, before, req); err != nil {
		return ratelimit.Decision{}, err
	}
	g.keys.update(key, func(k *keyState) { k.until = time.Time{} })
	return g.Peek(ctx, rule, key, params)
}

// storeOf is the store that has the rule's limiters.
func (g *Gate) storeOf(rule *rules.Compiled, params ratelimit.Params) Store {
	if rule.Scope == rules.ScopeNode || !params.InRedis() {
		return g.memory
	}
	return g.shared
}
