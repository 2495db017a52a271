package httpapi_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/auth"
	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/apicheck"
)

// newLimitedFixture returns a fixture with real rate limits over an in-process Redis.
func newLimitedFixture(t *testing.T, yaml string) *fixture {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr(), DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	list, err := rules.Parse([]byte(yaml))
	require.NoError(t, err)
	book, err := rules.New(append(rules.Defaults(), list...)...)
	require.NoError(t, err)
	store := redislimit.New(client, nil)
	g := gate.New(book, store, gate.Options{Deadline: 5 * time.Second})
	t.Cleanup(g.Close)
	limits := httpapi.NewRuleLimiter(book, g)

	tokens, err := auth.New(secret, 1024, time.Now)
	require.NoError(t, err)
	h := &fixture{
		fake: newFake(time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)), t: t,
		tokens: tokens, metrics: &recordedMetrics{}, log: &strings.Builder{},
	}
	handler := httpapi.New(httpapi.Deps{
		Sales: h, Reader: h, PathLimiter: limits, RouteLimiter: limits, LimiterAdmin: rules.NewAdmin(book, rules.NewSync(client, book), store, nil),
		Purchases: h, Orders: h, Payments: h, Statistics: h, Health: h, Tokens: tokens, Metrics: h.metrics,
		Log: slog.New(slog.NewTextHandler(&lockedWriter{w: h.log}, nil)),
	}, httpapi.Options{Now: func() time.Time { return h.now }})
	h.handler = handler
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	h.url, h.client = srv.URL, apicheck.Client(t, srv.Client())
	return h
}

// rated puts up a sale with a rate of its own.
func (h *fixture) rated(id int64, rate seckill.Rate) {
	h.sell(id)
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sales[id]
	s.Rate = rate
	h.sales[id] = s
}

func scarceRate() seckill.Rate {
	return seckill.Rate{Algorithm: "token_bucket", PermitsPerSecond: 0.02, MaxBurstSeconds: 100}
}

func TestRateLimits_PathUsesTheSalesOwnRate(t *testing.T) {
	h := newLimitedFixture(t, "rules: []")
	h.rated(43, scarceRate()) // a burst of two
	h.sell(44)
	who, other := buyer(), otherBuyer()
	for range 2 {
		r := h.ask(&who, http.MethodPost, "/randomPath?goodsId=43", "")
		require.Equal(t, http.StatusOK, r.Status, r.raw)
		require.Contains(t, r.Header.Get("RateLimit"), `"randomPath";r=`)
	}
	for _, buyer := range []*seckill.Actor{&who, &other} {
		r := h.ask(buyer, http.MethodPost, "/randomPath?goodsId=43", "")
		require.Equal(t, http.StatusTooManyRequests, r.Status, r.raw)
		require.Equal(t, "RATE_LIMITED", r.Reason)
		require.Equal(t, http.StatusTooManyRequests, r.Code)
		require.Regexp(t, `^(49|50)$`, r.Header.Get("Retry-After"))
		require.Regexp(t, `^"randomPath";r=0;t=\d+$`, r.Header.Get("RateLimit"))
		require.Equal(t, `"randomPath";q=2;w=100`, r.Header.Get("RateLimit-Policy"))
		require.Equal(t, "no-store", r.Header.Get("Cache-Control"))
	}
	require.Equal(t, http.StatusOK, h.ask(&who, http.MethodPost, "/randomPath?goodsId=44", "").Status)
}

func TestRateLimits_SaleStateComesBeforeTheLimit(t *testing.T) {
	h := newLimitedFixture(t, "rules: []")
	h.rated(43, scarceRate())
	who := buyer()
	for range 3 {
		h.ask(&who, http.MethodPost, "/randomPath?goodsId=43", "")
	}
	h.mu.Lock()
	s := h.sales[43]
	s.EndAt = h.now.Add(-time.Second)
	h.sales[43] = s
	h.mu.Unlock()
	require.Equal(t, "ENDED", h.ask(&who, http.MethodPost, "/randomPath?goodsId=43", "").Reason)
	require.Equal(t, "NOT_FOUND", h.ask(&who, http.MethodPost, "/randomPath?goodsId=99", "").Reason)
}

func TestRateLimits_PathHasAShareForEachUser(t *testing.T) {
	h := newLimitedFixture(t, "rules: []")
	h.sell(43)
	who, other := buyer(), otherBuyer()
	passed := 0
	for passed < 2000 && h.ask(&who, http.MethodPost, "/randomPath?goodsId=43", "").Status == http.StatusOK {
		passed++
	}
	require.GreaterOrEqual(t, passed, 20)
	require.Less(t, passed, 2000, "20/s with a second of burst, and the other has its own")
	require.Equal(t, http.StatusOK, h.ask(&other, http.MethodPost, "/randomPath?goodsId=43", "").Status)
}

const routeRules = `
rules:
  - {name: orders, route: GET /orders, by: [user], algorithm: fixed_window, limit: 2, interval: 1h,
     message: slow down, fallback: {code: 888, message: rate limit error}}
  - {name: goods, route: "/sales/:goodsId", by: [goods], algorithm: fixed_window, limit: 1, interval: 1h}
  - {name: closed, route: "GET /admin/sales", by: ["header:X-Tenant"], limit: 1, onMissingKey: deny}
`

func TestRateLimits_RuleSetsCodeAndMessage(t *testing.T) {
	h := newLimitedFixture(t, routeRules)
	who, other, seller := buyer(), otherBuyer(), merchant()
	for range 2 {
		require.Equal(t, http.StatusOK, h.ask(&who, http.MethodGet, "/orders", "").Status)
	}
	r := h.ask(&who, http.MethodGet, "/orders", "")
	require.Equal(t, http.StatusTooManyRequests, r.Status)
	require.Equal(t, 888, r.Code)
	require.Equal(t, "RATE_LIMITED", r.Reason)
	require.Equal(t, "rate limit error", r.Message)
	require.Equal(t, http.StatusOK, h.ask(&other, http.MethodGet, "/orders", "").Status)
	require.Equal(t, http.StatusTooManyRequests, h.ask(&seller, http.MethodGet, "/admin/sales", "").Status, "no X-Tenant")
	require.Equal(t, http.StatusOK, h.ask(&seller, http.MethodGet, "/admin/sales", "", "X-Tenant", "a").Status)
	require.Equal(t, http.StatusUnauthorized, h.ask(nil, http.MethodGet, "/orders", "").Status, "401 comes before 429")
}

func TestRateLimits_UnknownGoodsCreateNoBucket(t *testing.T) {
	h := newLimitedFixture(t, routeRules)
	h.sell(43)
	h.sell(44)
	status := func(id string) int { return h.ask(nil, http.MethodGet, "/sales/"+id, "").Status }
	require.Equal(t, http.StatusOK, status("43"))
	require.Equal(t, http.StatusTooManyRequests, status("43"))
	require.Equal(t, http.StatusOK, status("44"))
	require.Equal(t, http.StatusNotFound, status("901"))
	require.Equal(t, http.StatusTooManyRequests, status("902"), "all that are invented share one")
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
	read := func(r reply) setting {
		require.Equal(t, http.StatusOK, r.Status, r.raw)
		var s setting
		require.NoError(t, json.Unmarshal(r.Data, &s))
		return s
	}
	require.Equal(t, setting{"randomPath", "43", "reserve", "rule", 1000, 1000, 1000}, read(h.ask(&op, http.MethodGet, path, "")))
	set := h.ask(&op, http.MethodPut, path, `{"algorithm": "token_bucket", "permitsPerSecond": 0.01, "maxBurstSeconds": 1}`)
	require.Equal(t, setting{"randomPath", "43", "token_bucket", "operator", 0.01, 0, 1}, read(set))
	require.Equal(t, http.StatusOK, h.ask(&who, http.MethodPost, "/randomPath?goodsId=43", "").Status)
	require.Equal(t, http.StatusTooManyRequests, h.ask(&who, http.MethodPost, "/randomPath?goodsId=43", "").Status)
	require.Equal(t, http.StatusOK, h.ask(&op, http.MethodDelete, path, "").Status)
	require.Equal(t, "rule", read(h.ask(&op, http.MethodGet, path, "")).Source)
	require.Equal(t, http.StatusOK, h.ask(&who, http.MethodPost, "/randomPath?goodsId=43", "").Status)

	require.Equal(t, "2001:db8::/64", read(h.ask(&op, http.MethodGet, "/admin/limiters/orders/2001:db8::/64", "")).Key)
}

func TestLimiterAdmin_RefusesBadInput(t *testing.T) {
	h := newLimitedFixture(t, routeRules)
	op, seller := operator(), merchant()
	const path = "/admin/limiters/randomPath/43"
	require.Equal(t, http.StatusUnauthorized, h.ask(nil, http.MethodGet, path, "").Status)
	require.Equal(t, http.StatusForbidden, h.ask(&seller, http.MethodPut, path, `{"permitsPerSecond": 1}`).Status)
	require.Equal(t, http.StatusNotFound, h.ask(&op, http.MethodGet, "/admin/limiters/none/43", "").Status)
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
		r := h.ask(&op, http.MethodPut, path, body)
		require.Equal(t, http.StatusBadRequest, r.Status, body)
		var data struct{ Field string }
		require.NoError(t, json.Unmarshal(r.Data, &data))
		require.Equal(t, field, data.Field, body)
	}
}

func TestRateLimits_LeavingClientReturnsItsPermit(t *testing.T) {
	h := newLimitedFixture(t, "rules: []")
	h.rated(43, seckill.Rate{Algorithm: "reserve", PermitsPerSecond: 0.5, MaxBurstSeconds: 1, MaxWaitMillis: 3000})
	who, other := buyer(), otherBuyer()
	require.Equal(t, http.StatusOK, h.ask(&who, http.MethodPost, "/randomPath?goodsId=43", "").Status)

	leaves, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(leaves, http.MethodPost, h.url+"/randomPath?goodsId=43", nil)
	require.NoError(t, err)
	token, err := h.tokens.Sign(who, time.Hour)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	var left atomic.Bool
	go func() {
		resp, err := h.client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		left.Store(true)
	}()
	op := operator()
	booked := func() bool {
		r := h.ask(&op, http.MethodGet, "/admin/limiters/randomPath/43", "")
		var s struct{ ResetMillis int64 }
		return json.Unmarshal(r.Data, &s) == nil && s.ResetMillis > 2000
	}
	require.Eventually(t, booked, time.Minute, 5*time.Millisecond, "the second one has a permit booked")
	leave()
	require.Eventually(t, func() bool { return left.Load() && !booked() }, time.Minute, 5*time.Millisecond)
	require.Equal(t, http.StatusOK, h.ask(&other, http.MethodPost, "/randomPath?goodsId=43", "").Status)
}
