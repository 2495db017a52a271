package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/httpapi/params"
	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/seckill"
)

// PathRule is the rule of /randomPath whose rate each sale replaces with its own.
const (
	PathRule  = "randomPath"
	pathRoute = "/randomPath"
	// failedKeyRule limits requests with an API key that is not valid. It belongs to no route.
	failedKeyRule = "failedApiKey"
)

// RuleLimiter applies the rate limit rules to requests. A request that waits for a permit holds no
// lock. It is refused at once where the wait would outlast its deadline, and its permits are
// returned where the client leaves.
type RuleLimiter struct {
	Book *rules.Rulebook
	Gate *gate.Gate
}

// limitPath applies the rules of /randomPath, with the sale's own rate. It takes the permit of the
// sale's bucket last: a caller whom another rule refuses then takes nothing from the bucket, which
// all buyers share.
func (l *RuleLimiter) limitPath(ctx context.Context, v seckill.View, by seckill.Actor) error {
	c, own := requestContextOf(ctx).gin, LimitOfRate(v.Rate)
	checks := l.checks(c.Request.Method, pathRoute)
	isPath := func(check gate.Check) bool { return check.Rule == PathRule }
	switch {
	case v.Admission == seckill.ByWaitingRoom: // the line moves at the sale's rate
		checks = slices.DeleteFunc(checks, isPath)
	case slices.ContainsFunc(checks, isPath):
		checks = append(slices.DeleteFunc(checks, isPath), gate.Check{Rule: PathRule, Own: &own})
	}
	return l.acquire(ctx, attributes(c, pathRoute, v.GoodsID, by), checks)
}

// limitRoute applies the rules of the request's route.
func (l *RuleLimiter) limitRoute(ctx context.Context, goodsID int64, by seckill.Actor) error {
	c := requestContextOf(ctx).gin
	checks := l.checks(c.Request.Method, c.FullPath())
	if len(checks) == 0 {
		return nil
	}
	return l.acquire(ctx, attributes(c, c.FullPath(), goodsID, by), checks)
}

// limitFailedKey applies the rule of API keys that are not valid. Rules may be replaced, but the
// default ones always exist.
func (l *RuleLimiter) limitFailedKey(ctx context.Context) error {
	c := requestContextOf(ctx).gin
	attrs := attributes(c, c.FullPath(), 0, seckill.Actor{})
	return l.acquire(ctx, attrs, []gate.Check{{Rule: failedKeyRule}})
}

// limitsRoute reports whether a rule limits the request's route.
func (l *RuleLimiter) limitsRoute(ctx context.Context) bool { return len(l.rulesOf(ctx)) > 0 }

// countsByGoods reports whether a rule of the request's route counts by goods.
func (l *RuleLimiter) countsByGoods(ctx context.Context) bool {
	return slices.ContainsFunc(l.rulesOf(ctx), func(rule *rules.Compiled) bool {
		return slices.Contains(rule.By, "goods")
	})
}

// rulesOf returns the rules of the request's route.
func (l *RuleLimiter) rulesOf(ctx context.Context) []*rules.Compiled {
	c := requestContextOf(ctx).gin
	return l.Book.ForRoute(c.Request.Method, c.FullPath())
}

// checks returns the checks of a route's rules, each with one permit.
func (l *RuleLimiter) checks(method, route string) (checks []gate.Check) {
	for _, rule := range l.Book.ForRoute(method, route) {
		checks = append(checks, gate.Check{Rule: rule.Name})
	}
	return checks
}

// acquire takes a permit of every rule and waits until all permits are valid. It sets the RateLimit
// headers of an admission and of a denial; other errors have none.
func (l *RuleLimiter) acquire(
	ctx context.Context, attrs rules.Attributes, checks []gate.Check,
) error {
	results, err := l.Gate.DecideAll(ctx, attrs, checks...)
	if err != nil {
		return fmt.Errorf("limit: %w", err)
	}
	header := requestContextOf(ctx).gin.Writer.Header()
	for i := range results {
		if !results[i].Allowed {
			return limitErrorOf(header, &results[i])
		}
	}
	refused, err := gate.WaitAll(ctx, results)
	switch {
	case errors.Is(err, gate.ErrDraining):
		return apierror.NewUnavailable("this node is stopping", nil)
	case ctx.Err() != nil && err != nil:
		return fmt.Errorf("limit: %w", err)
	case err != nil:
		return limitErrorOf(header, refused)
	}
	setRateLimitHeaders(header, results)
	return nil
}

// LimitOfRate converts a sale's rate to a rate limit.
func LimitOfRate(r seckill.Rate) ratelimit.Limit {
	return ratelimit.Limit{
		Algorithm: ratelimit.Algorithm(r.Algorithm), PermitsPerSecond: r.PermitsPerSecond,
		MaxBurstSeconds: r.MaxBurstSeconds, MaxWaitMillis: r.MaxWaitMillis,
	}
}

// limitErrorOf sets the headers of a denied request and returns its error.
func limitErrorOf(header http.Header, r *gate.Result) error {
	if r.Unavailable {
		err := fmt.Errorf("rule %s is closed: %w", r.Rule.Name, r.Cause)
		return apierror.NewUnavailable("the rate limiter can't be asked", err)
	}
	apiErr := apierror.New(apierror.RateLimited, "too many requests")
	apiErr.RetryAfter = r.RetryAfter
	setRateLimitHeaders(header, []gate.Result{*r})
	e := &limitError{Err: apiErr}
	if r.Rule.Message != "" {
		apiErr.Message = r.Rule.Message
	}
	if own := r.Rule.Fallback; own != nil {
		e.Code = own.Code
		if own.Message != "" {
			apiErr.Message = own.Message
		}
	}
	return e
}

// setRateLimitHeaders sets RateLimit and RateLimit-Policy with one item per rule
// (draft-ietf-httpapi-ratelimit-headers). It writes the map with Go's canonical names.
// http.Header.Set would convert the names for each request.
func setRateLimitHeaders(header http.Header, results []gate.Result) {
	limit, policy := make([]byte, 0, 128), make([]byte, 0, 128) // on the stack
	for i := range results {
		limit, policy = results[i].AppendHeaders(limit, policy)
	}
	values := []string{string(limit), string(policy)}
	if len(limit) > 0 {
		header["Ratelimit"] = values[:1:1]
	}
	if len(policy) > 0 {
		header["Ratelimit-Policy"] = values[1:]
	}
}

// attributes returns what the rules may count by. An invalid address counts as missing.
func attributes(c *gin.Context, route string, goodsID int64, by seckill.Actor) rules.Attributes {
	return rules.Attributes{
		Goods: goodsID, User: by.ID, Route: route, Header: c.GetHeader,
		IP: func() netip.Addr { ip, _ := netip.ParseAddr(c.ClientIP()); return ip },
	}
}

// warnOfUnmatchedRules logs the rules that can never apply, because the API limits no such route. A
// mistyped route would otherwise leave its call without the limit, and nobody would notice.
func (a *api) warnOfUnmatchedRules() {
	// Without an issuer there is no such route.
	limited := []string{http.MethodGet + " " + SignInCallback}
	for _, rt := range a.routes() {
		if rt.unlimited && rt.path != pathRoute {
			continue
		}
		for method := range strings.FieldsSeq(rt.methods) {
			limited = append(limited, method+" "+rt.path)
		}
	}
	for _, rule := range a.Limiter.Book.Unmatched(limited) {
		a.Log.Warn("rate limit rule never applies: the API limits no such route",
			"rule", rule.Name, "route", rule.Route)
	}
}

// limitRoute applies a route's rules, for permit. A goods id counts only where the goods exists:
// callers could otherwise create a bucket per invented id.
func (a *api) limitRoute(ctx context.Context, rt route, r *request) error {
	if rt.unlimited || rt.unchecked {
		return nil
	}
	goodsID := int64(0)
	if r.Has("goodsId") && a.Limiter.countsByGoods(ctx) {
		id, ok := params.Decimal(r.Raw("goodsId"))
		if ok && id > 0 && a.requireExposed(ctx, id) == nil {
			goodsID = id
		}
	}
	return a.Limiter.limitRoute(ctx, goodsID, r.actor)
}
