package httpapi

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"flashsale.dev/seckill/internal/httpapi/params"
	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/seckill"
)

// PathRule is the rule that a sale's own rate takes the place of.
const (
	PathRule  = "randomPath"
	pathRoute = "/randomPath"
)

// RouteLimiter limits the routes that rules name. goodsID is 0 if the request names no goods that
// exists.
type RouteLimiter interface {
	// CountsByGoods reports whether a rule of the caller's route counts by goods.
	CountsByGoods(ctx context.Context) bool
	LimitRoute(ctx context.Context, goodsID int64, by seckill.Actor) error
}

// RuleLimiter applies the rules of a route. A request that waits holds no lock, and the gate limits
// how many wait. A request whose wait would exceed its deadline is denied at once. Permits are
// refunded when the client leaves.
type RuleLimiter struct {
	book *rules.Rulebook
	gate *gate.Gate
}

var (
	_ PathLimiter  = (*RuleLimiter)(nil)
	_ RouteLimiter = (*RuleLimiter)(nil)
)

// NewRuleLimiter makes a limiter of the rules in book, which gate applies.
func NewRuleLimiter(book *rules.Rulebook, gate *gate.Gate) *RuleLimiter {
	return &RuleLimiter{book: book, gate: gate}
}

// LimitPath applies the rules of /randomPath, with the sale's own rate. It checks the goods' limiter
// last, because all buyers share it: a buyer whom another rule denies takes nothing from it.
func (l *RuleLimiter) LimitPath(ctx context.Context, v seckill.View, by seckill.Actor) error {
	own := LimitOfRate(v.Rate)
	who := clientInfoOf(ctx)
	checks := l.checks(who.method, pathRoute)
	for i := range checks {
		if checks[i].Rule == PathRule {
			checks[i].Own = &own
		}
	}
	slices.SortStableFunc(checks, func(a, b gate.Check) int { return rank(a.Rule) - rank(b.Rule) })
	return l.acquire(ctx, who, attributes(who, pathRoute, v.GoodsID, by), checks)
}

func rank(rule string) int {
	if rule == PathRule {
		return 1
	}
	return 0
}

// LimitRoute applies the rules of the caller's route.
func (l *RuleLimiter) LimitRoute(ctx context.Context, goodsID int64, by seckill.Actor) error {
	who := clientInfoOf(ctx)
	return l.acquire(ctx, who, attributes(who, who.route, goodsID, by), l.checks(who.method, who.route))
}

// CountsByGoods reports whether a rule of the caller's route counts by goods.
func (l *RuleLimiter) CountsByGoods(ctx context.Context) bool {
	who := clientInfoOf(ctx)
	return slices.ContainsFunc(l.book.ForRoute(who.method, who.route), func(name string) bool {
		rule, _ := l.book.Rule(name)
		return slices.Contains(rule.By, "goods")
	})
}

func (l *RuleLimiter) checks(method, route string) []gate.Check {
	names := l.book.ForRoute(method, route)
	checks := make([]gate.Check, len(names))
	for i, name := range names {
		checks[i].Rule = name
	}
	return checks
}

// acquire takes a permit of each rule and waits until all are good.
func (l *RuleLimiter) acquire(
	ctx context.Context, who clientInfo, attrs rules.Attributes, checks []gate.Check,
) error {
	results, err := l.gate.DecideAll(ctx, attrs, 1, checks...)
	if err != nil {
		return fmt.Errorf("limit: %w", err)
	}
	for i := range results {
		if !results[i].Allowed {
			return limitErrorOf(&results[i])
		}
	}
	if stopped, err := gate.WaitAll(ctx, results); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("limit: %w", err)
		}
		return limitErrorOf(stopped)
	}
	for name, value := range rateLimitHeaders(results) {
		who.answer.Set(name, value)
	}
	return nil
}

// LimitOfRate is a sale's rate as a limit.
func LimitOfRate(r seckill.Rate) ratelimit.Limit {
	return ratelimit.Limit{
		Algorithm: ratelimit.Algorithm(r.Algorithm), PermitsPerSecond: r.PermitsPerSecond,
		MaxBurstSeconds: r.MaxBurstSeconds, MaxWaitMillis: r.MaxWaitMillis,
	}
}

// limitErrorOf is the error of a denial.
func limitErrorOf(o *gate.Result) error {
	if o.Unavailable {
		return seckill.NewUnavailable("the rate limiter can't be asked", fmt.Errorf("rule %s is closed", o.Rule()))
	}
	refusal := seckill.NewError(seckill.RateLimited, "too many requests")
	refusal.RetryAfter = o.RetryAfter
	d := &LimitError{Refusal: refusal, Header: rateLimitHeaders([]gate.Result{*o})}
	if o.Message() != "" {
		refusal.Message = o.Message()
	}
	if own := o.Fallback(); own != nil {
		d.Code = own.Code
		if own.Message != "" {
			refusal.Message = own.Message
		}
	}
	return d
}

// rateLimitHeaders are RateLimit and RateLimit-Policy, an item for each rule.
func rateLimitHeaders(results []gate.Result) map[string]string {
	var limits, policies []string
	for i := range results {
		if limit, policy := results[i].Headers(); limit != "" {
			limits, policies = append(limits, limit), append(policies, policy)
		}
	}
	if limits == nil {
		return nil
	}
	return map[string]string{"RateLimit": strings.Join(limits, ", "), "RateLimit-Policy": strings.Join(policies, ", ")}
}

func attributes(who clientInfo, route string, goodsID int64, by seckill.Actor) rules.Attributes {
	return rules.Attributes{Goods: goodsID, User: by.ID, IP: who.ip, Route: route, Header: who.header}
}

// limitRoute applies the rules of a route before its handler. A goods counts only if it exists,
// because an invented id must not create a limiter of its own.
func (a *api) limitRoute(ctx context.Context, rt route, r *request) error {
	if a.RouteLimiter == nil || rt.unlimited || rt.unchecked {
		return nil
	}
	goodsID := int64(0)
	if r.Has("goodsId") && a.RouteLimiter.CountsByGoods(ctx) {
		if id, ok := params.Decimal(r.Raw("goodsId")); ok && id > 0 && a.requireExposed(ctx, id) == nil {
			goodsID = id
		}
	}
	return a.RouteLimiter.LimitRoute(ctx, goodsID, r.actor)
}
