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

// LimiterAdmin reads and changes limits while they run; *rules.Admin is one.
type LimiterAdmin interface {
	Get(ctx context.Context, rule, key string) (rules.Setting, error)
	Set(ctx context.Context, rule, key string, change rules.Change) (rules.Setting, error)
	Delete(ctx context.Context, rule, key string) error
}

var _ LimiterAdmin = (*rules.Admin)(nil)

// limiterRoutes are open whatever the limits are: an operator who is shut out could not mend it. A key may hold
// slashes, as an IPv6 network does.
func (a *api) limiterRoutes() []route {
	if a.LimiterAdmin == nil {
		return nil
	}
	const path = "/admin/limiters/:type/*key"
	return []route{
		{methods: []string{http.MethodGet, http.MethodHead}, path: path, unlimited: true, handle: a.getLimiter},
		{methods: []string{http.MethodPut}, path: path, unlimited: true, handle: a.setLimiter, fields: []string{
			"algorithm", "permitsPerSecond", "maxBurstSeconds", "maxWaitMillis", "burst", "delay", "nodelay",
			"limit", "intervalSeconds", "parts", "warmupSeconds", "coldFactor",
		}},
		{methods: []string{http.MethodDelete}, path: path, unlimited: true, handle: a.deleteLimiter},
	}
}

func (a *api) getLimiter(ctx context.Context, r *request) (response, error) {
	rule, key := limiterOf(r)
	if err := a.requireOperator(ctx, r.actor, rule, key); err != nil {
		return response{}, err
	}
	s, err := a.LimiterAdmin.Get(ctx, rule, key)
	return ok(s), limiterError(err)
}

func (a *api) setLimiter(ctx context.Context, r *request) (response, error) {
	rule, key := limiterOf(r)
	change := changeOf(r.Fields)
	if err := r.Err(); err != nil {
		return response{}, err
	}
	if err := a.requireOperator(ctx, r.actor, rule, key); err != nil {
		return response{}, err
	}
	s, err := a.LimiterAdmin.Set(ctx, rule, key, change)
	return ok(s), limiterError(err)
}

func (a *api) deleteLimiter(ctx context.Context, r *request) (response, error) {
	rule, key := limiterOf(r)
	if err := a.requireOperator(ctx, r.actor, rule, key); err != nil {
		return response{}, err
	}
	return ok(nil), limiterError(a.LimiterAdmin.Delete(ctx, rule, key))
}

func (a *api) requireOperator(ctx context.Context, by seckill.Actor, rule, key string) error {
	return requireRole(by.Role == seckill.Operator, func() error {
		_, err := a.LimiterAdmin.Get(ctx, rule, key)
		return limiterError(err)
	})
}

func limiterOf(r *request) (rule, key string) {
	return r.Raw("type"), strings.TrimPrefix(r.Raw("key"), "/")
}

// limiterError turns what the limiter says into refusals.
func limiterError(err error) error {
	var field *ratelimit.FieldError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &field):
		return seckill.NewFieldError(field.Field, "%s", field.Problem)
	case errors.Is(err, rules.ErrNoRule):
		return seckill.NewError(seckill.NotFound, "there is no such limiter")
	default:
		return seckill.NewUnavailable("the limiters can't be reached", err)
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
