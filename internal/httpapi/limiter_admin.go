package httpapi

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/httpapi/params"
	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/seckill"
)

// listLimiters is GET /admin/limiters. A cursor holds the rule and the key of the last limiter.
func (a *api) listLimiters(ctx context.Context, r *request) (response, error) {
	isLimiter := func(s string) bool { return strings.Contains(s, "/") && utf8.ValidString(s) }
	limit, after := r.limit(), r.cursor(limiterCursor, isLimiter)
	if err := r.checked(ctx); err != nil {
		return response{}, err
	}
	all, err := a.LimiterAdmin.List(ctx)
	if err != nil {
		return response{}, limiterError(err)
	}
	if after != "" {
		name, key, _ := strings.Cut(after, "/")
		all = slices.DeleteFunc(all, func(s rules.Setting) bool {
			return cmp.Or(cmp.Compare(s.Type, name), byKey(s.Key, key)) <= 0
		})
	}
	show := func(s rules.Setting) rules.Setting { return s }
	position := func(s rules.Setting) string { return limiterCursor + s.Type + "/" + s.Key }
	return ok(page(all, limit, show, position)), nil
}

// byKey orders the limiters of a rule: the one for every key is first.
func byKey(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == rules.AnyKey:
		return -1
	case b == rules.AnyKey:
		return 1
	}
	return cmp.Compare(a, b)
}

// getLimiter is GET /admin/limiters/{type}/{key}.
func (a *api) getLimiter(ctx context.Context, r *request) (response, error) {
	rule, key := limiterOf(r)
	if err := a.requireOperator(ctx, r, rule, key); err != nil {
		return response{}, err
	}
	s, err := a.LimiterAdmin.Get(ctx, rule, key)
	return ok(s), limiterError(err)
}

// setLimiter is PUT and PATCH /admin/limiters/{type}/{key}; absent fields keep their values.
func (a *api) setLimiter(ctx context.Context, r *request) (response, error) {
	rule, key := limiterOf(r)
	change := limiterChange(r.Fields)
	if err := r.Err(); err != nil {
		return response{}, err
	}
	if err := a.requireOperator(ctx, r, rule, key); err != nil {
		return response{}, err
	}
	s, err := a.LimiterAdmin.Set(seckill.WithActor(ctx, r.actor), rule, key, change)
	return ok(s), limiterError(err)
}

// deleteLimiter is DELETE /admin/limiters/{type}/{key}: the rule's own setting applies again.
func (a *api) deleteLimiter(ctx context.Context, r *request) (response, error) {
	rule, key := limiterOf(r)
	if err := a.requireOperator(ctx, r, rule, key); err != nil {
		return response{}, err
	}
	err := a.LimiterAdmin.Delete(seckill.WithActor(ctx, r.actor), rule, key)
	return ok(nil), limiterError(err)
}

// requireOperator refuses other roles, after NOT_FOUND for an unknown limiter.
func (a *api) requireOperator(ctx context.Context, r *request, rule, key string) error {
	return r.permit(ctx, func() error {
		return limiterError(errorOnly(a.LimiterAdmin.Get(ctx, rule, key)))
	})
}

// limiterOf returns the rule and the key of the path. Gin keeps a wildcard's first slash.
func limiterOf(r *request) (rule, key string) {
	return r.Raw("type"), strings.TrimPrefix(r.Raw("key"), "/")
}

// limiterError maps a limiter's error to one that the client may see.
func limiterError(err error) error {
	var field *ratelimit.FieldError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &field):
		return apierror.NewBadField(field.Field, "%s", field.Problem)
	case errors.Is(err, rules.ErrNoRule):
		return apierror.New(apierror.NotFound, "there is no such limiter")
	default:
		return apierror.NewUnavailable("the limiters can't be reached", err)
	}
}

// limiterChange takes the given fields; an absent field keeps its value.
func limiterChange(p *params.Fields) rules.Change {
	algorithm := func(name string) ratelimit.Algorithm { return ratelimit.Algorithm(p.Text(name)) }
	return rules.Change{
		Algorithm:        params.Optional(p, "algorithm", algorithm),
		PermitsPerSecond: params.Optional(p, "permitsPerSecond", p.Float),
		MaxBurstSeconds:  params.Optional(p, "maxBurstSeconds", p.Float),
		IntervalSeconds:  params.Optional(p, "intervalSeconds", p.Float),
		WarmupSeconds:    params.Optional(p, "warmupSeconds", p.Float),
		ColdFactor:       params.Optional(p, "coldFactor", p.Float),
		MaxWaitMillis:    params.Optional(p, "maxWaitMillis", p.Int),
		Burst:            params.Optional(p, "burst", p.Int),
		Delay:            params.Optional(p, "delay", p.Int),
		Limit:            params.Optional(p, "limit", p.Int),
		Parts:            params.Optional(p, "parts", p.Int),
		NoDelay:          params.Optional(p, "nodelay", p.Bool),
	}
}
