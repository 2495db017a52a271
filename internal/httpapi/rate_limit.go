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

// RouteLimiter stands before the routes that rules name. goodsID is 0 where there is none that is known to exist.
type RouteLimiter interface {
	// ByGoods tells whether a rule of the caller's route counts by goods.
	CountsByGoods(ctx context.Context) bool
	LimitRoute(ctx context.Context, goodsID int64, by seckill.Actor) error
}

// RuleLimiter asks the rules that guard a route. A request that waits holds no lock, counts against the gate's cap, is
// refused at once where its wait would outlast its deadline, and gives its permits back when the client leaves.
type RuleLimiter struct {
	book *rules.Rulebook
	gate *gate.Gate
}

var (
	_ PathLimiter  = (*RuleLimiter)(nil)
	_ RouteLimiter = (*RuleLimiter)(nil)
)

// NewRuleLimiter stands on the rules and the gate that applies them.
func NewRuleLimiter(book *rules.Rulebook, gate *gate.Gate) *RuleLimiter {
	return &RuleLimiter{book: book, gate: gate}
}

// LimitPath is Limiter's: the rules of /randomPath, with the sale's own rate. The goods' bucket, which all share, is asked last:
// whoever is refused by a rule of his own takes nothing from it, not even for the moment until it is given back.
func (l *RuleLimiter) LimitPath(ctx context.Context, v seckill.View, by seckill.Actor) error {
	own := LimitOfRate(v.Rate)
	who := clientInfoOf(ctx)
	wants := l.wants(who.method, pathRoute)
	for i := range wants {
		if wants[i].Rule == PathRule {
			wants[i].Own = &own
		}
	}
	slices.SortStableFunc(wants, func(a, b gate.Want) int { return rank(a.Rule) - rank(b.Rule) })
	return l.acquire(ctx, who, attributes(who, pathRoute, v.GoodsID, by), wants)
}

func rank(rule string) int {
	if rule == PathRule {
		return 1
	}
	return 0
}

// RouteLimiter is Guard's: the rules of the caller's route.
func (l *RuleLimiter) LimitRoute(ctx context.Context, goodsID int64, by seckill.Actor) error {
	who := clientInfoOf(ctx)
	return l.acquire(ctx, who, attributes(who, who.route, goodsID, by), l.wants(who.method, who.route))
}

// ByGoods is Guard's.
func (l *RuleLimiter) CountsByGoods(ctx context.Context) bool {
	who := clientInfoOf(ctx)
	return slices.ContainsFunc(l.book.Guarding(who.method, who.route), func(name string) bool {
		rule, _ := l.book.Rule(name)
		return slices.Contains(rule.By, "goods")
	})
}

func (l *RuleLimiter) wants(method, route string) []gate.Want {
	names := l.book.Guarding(method, route)
	wants := make([]gate.Want, len(names))
	for i, name := range names {
		wants[i].Rule = name
	}
	return wants
}

// pass asks all the rules, and waits for the permits.
func (l *RuleLimiter) acquire(ctx context.Context, who clientInfo, attrs rules.Attributes, wants []gate.Want) error {
	outcomes, err := l.gate.DecideAll(ctx, attrs, 1, wants...)
	if err != nil {
		return fmt.Errorf("limit: %w", err)
	}
	for i := range outcomes {
		if !outcomes[i].Allowed {
			return limitErrorOf(&outcomes[i])
		}
	}
	if stopped, err := gate.WaitAll(ctx, outcomes); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("limit: %w", err)
		}
		return limitErrorOf(stopped)
	}
	for name, value := range rateLimitHeaders(outcomes) {
		who.answer.Set(name, value)
	}
	return nil
}

// LimitOfRate is a sale's rate as the limiter takes it.
func LimitOfRate(r seckill.Rate) ratelimit.Limit {
	return ratelimit.Limit{
		Algorithm: ratelimit.Algorithm(r.Algorithm), PermitsPerSecond: r.PermitsPerSecond,
		MaxBurstSeconds: r.MaxBurstSeconds, MaxWaitMillis: r.MaxWaitMillis,
	}
}

// limitErrorOf is how a limiter's no is told.
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
func rateLimitHeaders(outcomes []gate.Result) map[string]string {
	var limits, policies []string
	for i := range outcomes {
		if limit, policy := outcomes[i].Headers(); limit != "" {
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

// guard asks the rules of a route before its handler. A goods counts only where it exists: an invented id must not
// make a bucket of its own.
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
