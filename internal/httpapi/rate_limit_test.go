package httpapi_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
)

// limiter holds a node's rate limits over an in-process Redis.
type limiter struct {
	book  *rules.Rulebook
	store *redislimit.Store
	admin *rules.Admin
}

func newLimiter(t testing.TB, yaml string) limiter {
	t.Helper()
	addr := miniredis.RunT(t).Addr()
	client := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	own := must.Get(rules.Parse([]byte(yaml)))(t)
	book := must.Get(rules.New(append(rules.Defaults(), own...)...))(t)
	store := redislimit.New(client, nil)
	return limiter{book, store, rules.NewAdmin(book, rules.NewSync(client, book), store, nil)}
}

// newLimitedFixture starts an API with real rate limits.
func newLimitedFixture(t *testing.T, yaml string) *fixture {
	t.Helper()
	l := newLimiter(t, yaml)
	g := gate.New(l.book, l.store, gate.Options{Deadline: 5 * time.Second})
	t.Cleanup(g.Close)
	limits := httpapi.NewRuleLimiter(l.book, g)
	return newFixture(t, func(d *httpapi.Deps) {
		d.LimitPath, d.RouteLimiter, d.LimiterAdmin = limits.LimitPath, limits, l.admin
	})
}

// rated returns a change that sets a sale's rate.
func rated(rate seckill.Rate) func(s *sale) { return func(s *sale) { s.Rate = rate } }

// path requests a random path.
func (h *fixture) path(who actor, goods int64) reply {
	h.t.Helper()
	return h.as(who, "POST", "/randomPath?goodsId="+text(goods), "")
}

func scarceRate() seckill.Rate {
	return seckill.Rate{Algorithm: "token_bucket", PermitsPerSecond: 0.02, MaxBurstSeconds: 100}
}

func TestRateLimits_PathUsesTheSalesOwnRate(t *testing.T) {
	h := newLimitedFixture(t, "rules: []")
	h.sell(43, rated(scarceRate())) // burst of two
	h.sell(44)
	for range 2 {
		r := h.want(200, h.path(buyer(), 43))
		require.Contains(t, r.Header.Get("RateLimit"), `"randomPath";r=`)
	}
	for _, who := range []actor{buyer(), otherBuyer()} {
		r := h.want(429, h.path(who, 43))
		require.Equal(t, "RATE_LIMITED", r.Reason)
		require.Equal(t, http.StatusTooManyRequests, r.Code)
		require.Regexp(t, `^(49|50)$`, r.Header.Get("Retry-After"))
		require.Regexp(t, `^"randomPath";r=0;t=\d+$`, r.Header.Get("RateLimit"))
		require.Equal(t, `"randomPath";q=2;w=100`, r.Header.Get("RateLimit-Policy"))
		require.Equal(t, "no-store", r.Header.Get("Cache-Control"))
	}
	h.want(200, h.path(buyer(), 44))
}

func TestRateLimits_SaleStateComesBeforeTheLimit(t *testing.T) {
	h := newLimitedFixture(t, "rules: []")
	h.sell(43, rated(scarceRate()))
	who := buyer()
	for range 3 {
		h.path(who, 43)
	}
	h.sell(43, rated(scarceRate()), func(s *sale) { s.EndAt = h.now.Add(-time.Second) })
	require.Equal(t, "ENDED", h.path(who, 43).Reason)
	require.Equal(t, "NOT_FOUND", h.path(who, 99).Reason)
}

func TestRateLimits_PathHasAShareForEachUser(t *testing.T) {
	h := newLimitedFixture(t, "rules: []")
	h.sell(43)
	passed := 0
	for passed < 2000 && h.path(buyer(), 43).Status == http.StatusOK {
		passed++
	}
	require.GreaterOrEqual(t, passed, 20)
	require.Less(t, passed, 2000,
		"20/s with one second of burst; another user has a limit of its own")
	h.want(200, h.path(otherBuyer(), 43))
}

const routeRules = `
rules:
  - {name: orders, route: GET /orders, by: [user], algorithm: fixed_window, limit: 2, interval: 1h,
     message: slow down, fallback: {code: 888, message: rate limit error}}
  - {name: goods, route: "/sales/:goodsId", by: [goods], algorithm: fixed_window, limit: 1,
     interval: 1h}
  - {name: closed, route: "GET /admin/sales", by: ["header:X-Tenant"], limit: 1, onMissingKey: deny}
`

func TestRateLimits_RuleSetsCodeAndMessage(t *testing.T) {
	h := newLimitedFixture(t, routeRules)
	who, other, seller := buyer(), otherBuyer(), merchant()
	for range 2 {
		h.want(200, h.as(who, "GET", "/orders", ""))
	}
	r := h.want(429, h.as(who, "GET", "/orders", ""))
	require.Equal(t, 888, r.Code)
	require.Equal(t, "RATE_LIMITED", r.Reason)
	require.Equal(t, "rate limit error", r.Message)
	h.want(200, h.as(other, "GET", "/orders", ""))
	h.want(429, h.as(seller, "GET", "/admin/sales", "")) // without X-Tenant
	h.want(200, h.as(seller, "GET", "/admin/sales", "", "X-Tenant", "a"))
	h.want(401, h.ask("GET", "/orders", "")) // 401 precedes 429
}

func TestRateLimits_UnknownGoodsCreateNoBucket(t *testing.T) {
	h := newLimitedFixture(t, routeRules)
	h.sell(43)
	h.sell(44)
	for _, c := range []struct {
		id     string
		status int
	}{{"43", 200}, {"43", 429}, {"44", 200}, {"901", 404}, {"902", 429}} { // unknown ids share one
		h.want(c.status, h.ask("GET", "/sales/"+c.id, ""))
	}
}

func TestLimiterAdmin_ReadsAndChangesLimits(t *testing.T) {
	h := newLimitedFixture(t, routeRules)
	h.sell(43)
	op, who := operator(), buyer()
	const path = "/admin/limiters/randomPath/43"

	type setting struct {
		Type, Key, Algorithm, Source string
		PermitsPerSecond             float64
		MaxWaitMillis, Remaining     int64
	}
	call := func(method, path, body string) setting {
		return dataOf[setting](h, h.want(200, h.as(op, method, path, body)))
	}
	byRule := setting{"randomPath", "43", "reserve", "rule", 1000, 1000, 1000}
	require.Equal(t, byRule, call("GET", path, ""))
	set := `{"algorithm": "token_bucket", "permitsPerSecond": 0.01, "maxBurstSeconds": 1}`
	byOperator := setting{"randomPath", "43", "token_bucket", "operator", 0.01, 0, 1}
	require.Equal(t, byOperator, call("PUT", path, set))
	h.want(200, h.path(who, 43))
	h.want(429, h.path(who, 43))
	h.want(200, h.as(op, "DELETE", path, ""))
	require.Equal(t, "rule", call("GET", path, "").Source)
	h.want(200, h.path(who, 43))
	require.Equal(t, "2001:db8::/64", call("GET", "/admin/limiters/orders/2001:db8::/64", "").Key)
}

func TestLimiterAdmin_RefusesBadInput(t *testing.T) {
	h := newLimitedFixture(t, routeRules)
	op, seller := operator(), merchant()
	const path = "/admin/limiters/randomPath/43"
	h.want(401, h.ask("GET", path, ""))
	h.want(403, h.as(seller, "PUT", path, `{"permitsPerSecond": 1}`))
	h.want(404, h.as(op, "GET", "/admin/limiters/none/43", ""))
	for body, field := range map[string]string{
		`{"permitsPerSecond": 0}`:       "permitsPerSecond",
		`{"permitsPerSecond": -1}`:      "permitsPerSecond",
		`{"permitsPerSecond": "5"}`:     "permitsPerSecond",
		`{"permitsPerSecond": 1e300}`:   "permitsPerSecond",
		`{"algorithm": "magic"}`:        "algorithm",
		`{"algorithm": "sliding_log"}`:  "algorithm",
		`{"maxWaitMillis": 1.5}`:        "maxWaitMillis",
		`{"maxWaitMillis": -1}`:         "maxWaitMillis",
		`{"nodelay": "yes"}`:            "nodelay",
		`{"colour": 1}`:                 "colour",
		`{"maxBurstSeconds": 99999999}`: "maxBurstSeconds",
	} {
		r := h.want(400, h.as(op, "PUT", path, body))
		require.Equal(t, field, dataOf[struct{ Field string }](h, r).Field, body)
	}
}

func TestRateLimits_LeavingClientReturnsItsPermit(t *testing.T) {
	h := newLimitedFixture(t, "rules: []")
	h.sell(43, rated(seckill.Rate{
		Algorithm: "reserve", PermitsPerSecond: 0.5, MaxBurstSeconds: 1, MaxWaitMillis: 3000,
	}))
	h.want(200, h.path(buyer(), 43))

	leaves, leave := context.WithCancel(t.Context())
	target := h.url + "/randomPath?goodsId=43"
	req := must.Get(http.NewRequestWithContext(leaves, "POST", target, nil))(t)
	req.Header.Set("Authorization", h.bearer(buyer()))
	var left atomic.Bool
	go func() {
		resp, err := h.client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		left.Store(true)
	}()
	booked := func() bool { // whether the waiting request has booked its permit
		r := h.as(operator(), "GET", "/admin/limiters/randomPath/43", "")
		return dataOf[struct{ ResetMillis int64 }](h, r).ResetMillis > 2000
	}
	require.Eventually(t, booked, time.Minute, 5*time.Millisecond)
	leave()
	returned := func() bool { return left.Load() && !booked() }
	require.Eventually(t, returned, time.Minute, 5*time.Millisecond)
	h.want(200, h.path(otherBuyer(), 43))
}
