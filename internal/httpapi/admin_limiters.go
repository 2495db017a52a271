package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

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
	change := changeOf(r.params)
	if err := r.bad(); err != nil {
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
	return r.find("type").text, strings.TrimPrefix(r.find("key").text, "/")
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
func changeOf(p *params) rules.Change {
	c := rules.Change{
		PermitsPerSecond: given(p, "permitsPerSecond", p.float), MaxBurstSeconds: given(p, "maxBurstSeconds", p.float),
		IntervalSeconds: given(p, "intervalSeconds", p.float), WarmupSeconds: given(p, "warmupSeconds", p.float),
		ColdFactor: given(p, "coldFactor", p.float), MaxWaitMillis: given(p, "maxWaitMillis", p.whole),
		Burst: given(p, "burst", p.whole), Delay: given(p, "delay", p.whole), Limit: given(p, "limit", p.whole),
		Parts: given(p, "parts", p.whole), NoDelay: given(p, "nodelay", p.truth),
	}
	if p.find("algorithm") != nil {
		algorithm := ratelimit.Algorithm(p.text("algorithm"))
		c.Algorithm = &algorithm
	}
	return c
}

func given[T any](p *params, name string, take func(name string, otherwise T) T) *T {
	if p.find(name) == nil {
		return nil
	}
	var none T
	v := take(name, none)
	return &v
}

func (p *params) whole(name string, _ int64) int64 { return p.integer(name) }

// truth takes true or false: a JSON boolean, or the words outside of JSON.
func (p *params) truth(name string, _ bool) bool {
	f := p.find(name)
	if f.kind != boolean && f.kind != bare || f.text != "true" && f.text != "false" {
		p.complain(name, "must be true or false")
	}
	return f.text == "true"
}
