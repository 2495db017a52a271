package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"flashsale.dev/seckill/internal/httpapi/params"
	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/seckill"
)

// Limiters reads and changes limits while they run; *rules.Admin is one.
type Limiters interface {
	Get(ctx context.Context, rule, key string) (rules.Setting, error)
	Set(ctx context.Context, rule, key string, change rules.Change) (rules.Setting, error)
	Delete(ctx context.Context, rule, key string) error
}

var _ Limiters = (*rules.Admin)(nil)

// limiterRoutes are open whatever the limits are: an operator who is shut out could not mend it. A key may hold
// slashes, as an IPv6 network does.
func (a *api) limiterRoutes() []route {
	if a.Limiters == nil {
		return nil
	}
	const path = "/admin/limiters/:type/*key"
	return []route{
		{methods: []string{http.MethodGet, http.MethodHead}, path: path, unguarded: true, do: a.getLimiter},
		{methods: []string{http.MethodPut}, path: path, unguarded: true, do: a.setLimiter, fields: []string{
			"algorithm", "permitsPerSecond", "maxBurstSeconds", "maxWaitMillis", "burst", "delay", "nodelay",
			"limit", "intervalSeconds", "parts", "warmupSeconds", "coldFactor",
		}},
		{methods: []string{http.MethodDelete}, path: path, unguarded: true, do: a.deleteLimiter},
	}
}

func (a *api) getLimiter(ctx context.Context, r *request) (answer, error) {
	rule, key := limiterOf(r)
	if err := a.onlyOperators(ctx, r.actor, rule, key); err != nil {
		return answer{}, err
	}
	s, err := a.Limiters.Get(ctx, rule, key)
	return ok(s), limiterTrouble(err)
}

func (a *api) setLimiter(ctx context.Context, r *request) (answer, error) {
	rule, key := limiterOf(r)
	change := changeOf(r.Fields)
	if err := r.Err(); err != nil {
		return answer{}, err
	}
	if err := a.onlyOperators(ctx, r.actor, rule, key); err != nil {
		return answer{}, err
	}
	s, err := a.Limiters.Set(ctx, rule, key, change)
	return ok(s), limiterTrouble(err)
}

func (a *api) deleteLimiter(ctx context.Context, r *request) (answer, error) {
	rule, key := limiterOf(r)
	if err := a.onlyOperators(ctx, r.actor, rule, key); err != nil {
		return answer{}, err
	}
	return ok(nil), limiterTrouble(a.Limiters.Delete(ctx, rule, key))
}

func (a *api) onlyOperators(ctx context.Context, by seckill.Actor, rule, key string) error {
	return forRole(by.Role == seckill.Operator, func() error {
		_, err := a.Limiters.Get(ctx, rule, key)
		return limiterTrouble(err)
	})
}

func limiterOf(r *request) (rule, key string) {
	return r.Raw("type"), strings.TrimPrefix(r.Raw("key"), "/")
}

// limiterTrouble turns what the limiter says into refusals.
func limiterTrouble(err error) error {
	var field *ratelimit.FieldError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &field):
		return seckill.BadField(field.Field, "%s", field.Problem)
	case errors.Is(err, rules.ErrNoRule):
		return seckill.Refuse(seckill.NotFound, "there is no such limiter")
	default:
		return seckill.Down("the limiters can't be reached", err)
	}
}

// changeOf takes what is there; what is left out stays as it is.
func changeOf(p *params.Fields) rules.Change {
	c := rules.Change{
		PermitsPerSecond: params.Optional(p, "permitsPerSecond", p.Float), MaxBurstSeconds: params.Optional(p, "maxBurstSeconds", p.Float),
		IntervalSeconds: params.Optional(p, "intervalSeconds", p.Float), WarmupSeconds: params.Optional(p, "warmupSeconds", p.Float),
		ColdFactor: params.Optional(p, "coldFactor", p.Float), MaxWaitMillis: params.Optional(p, "maxWaitMillis", p.Int),
		Burst: params.Optional(p, "burst", p.Int), Delay: params.Optional(p, "delay", p.Int), Limit: params.Optional(p, "limit", p.Int),
		Parts: params.Optional(p, "parts", p.Int), NoDelay: params.Optional(p, "nodelay", p.Bool),
	}
	if p.Has("algorithm") {
		algorithm := ratelimit.Algorithm(p.Text("algorithm"))
		c.Algorithm = &algorithm
	}
	return c
}
