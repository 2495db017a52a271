package httpapi_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/httpapi"
	"flashsale.dev/seckill/internal/testing/badrequests"
	"flashsale.dev/seckill/internal/testing/must"
)

// scarce is the rate of a sale with a burst of two.
func scarce() sale {
	return sale{"rate": sale{
		"algorithm": "token_bucket", "permitsPerSecond": 0.02, "maxBurstSeconds": 100,
		"maxWaitMillis": 0,
	}}
}

func TestRateLimits_PathUsesTheSalesOwnRate(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	goods, other := h.sell(scarce()), h.sell(nil)
	for range 2 {
		r := h.want(200, h.path(buyer(), goods))
		require.Contains(t, r.Header.Get("RateLimit"), `"randomPath";r=`)
	}
	for _, who := range []actor{buyer(), otherBuyer()} {
		r := h.want(429, h.path(who, goods))
		require.Equal(t, "RATE_LIMITED", r.Reason)
		require.Equal(t, http.StatusTooManyRequests, r.Code)
		require.Regexp(t, `^(4\d|50)$`, r.Header.Get("Retry-After"))
		require.Regexp(t, `^"randomPath";r=0;t=\d+$`, r.Header.Get("RateLimit"))
		require.Equal(t, `"randomPath";q=2;w=100`, r.Header.Get("RateLimit-Policy"))
		require.Equal(t, "no-store", r.Header.Get("Cache-Control"))
	}
	h.want(200, h.path(buyer(), other))

	// The state of the sale comes before the limit.
	h.want(200, h.as(merchant(), "POST", "/admin/sales/"+goods+"/close", ""))
	ended := func() bool { return h.path(buyer(), goods).Reason == "ENDED" } // the view is cached
	require.Eventually(t, ended, time.Minute, 100*time.Millisecond)
	require.Equal(t, "NOT_FOUND", h.path(buyer(), "99").Reason)
}

// It is not parallel and sends several requests at once, because the limit is refilled meanwhile.
func TestRateLimits_PathHasAShareForEachUser(t *testing.T) {
	h := newFixture(t)
	goods, passed, limited := h.sell(nil), atomic.Int64{}, atomic.Bool{}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for !limited.Load() && passed.Load() < 2000 {
				if h.path(buyer(), goods).Status == http.StatusOK {
					passed.Add(1)
				} else {
					limited.Store(true)
				}
			}
		})
	}
	all.Wait()
	require.GreaterOrEqual(t, passed.Load(), int64(20))
	require.True(t, limited.Load(), "20/s with one second of burst")
	h.want(200, h.path(otherBuyer(), goods)) // another user has a limit of its own
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
	t.Parallel()
	h := newFixture(t, routeRules)
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
	require.Equal(t, 429, h.as(who, "HEAD", "/orders", "").Status)
}

// TestRateLimits_ExampleFileHasNoLimitThatStrangersShare reads the public list more often than the
// example permits a user. Calls without a token have no user: one caller would shut all others out.
func TestRateLimits_ExampleFileHasNoLimitThatStrangersShare(t *testing.T) {
	t.Parallel()
	h := newFixture(t, string(must.Get(os.ReadFile("../../deploy/ratelimit.example.yaml"))(t)))
	for range 100 {
		h.want(200, h.ask("GET", "/sales", ""))
	}
	h.want(200, h.ask("DELETE", "/session", ""))
}

func TestRateLimits_RuleWithoutARouteOfTheAPIIsAWarning(t *testing.T) {
	t.Parallel()
	h, text := newFixture(t, `
rules:
  - {name: all, route: "*"}
  - {name: purchase, route: "POST /:randomPath/decrStock"}
  - {name: path, route: GET /randomPath}
  - {name: byName}
  - {name: mistyped, route: GET /order}
  - {name: braces, route: "/orders/{orderSn}"}
  - {name: method, route: POST /orders}
  - {name: never, route: "/admin/limiters"}
`), &bytes.Buffer{}
	deps := h.Deps
	deps.Log = slog.New(slog.NewTextHandler(text, nil))
	httpapi.New(deps)
	warned := regexp.MustCompile(`rule=\w+ route`).FindAllString(text.String(), -1)
	require.Equal(t, []string{
		"rule=mistyped route", "rule=braces route", "rule=method route", "rule=never route",
	}, warned)
}

func TestRateLimits_UnknownGoodsCreateNoBucket(t *testing.T) {
	t.Parallel()
	h := newFixture(t, routeRules)
	one, two := h.sell(nil), h.sell(nil)
	for _, c := range []struct {
		id     string
		status int
	}{{one, 200}, {one, 429}, {two, 200}, {"901", 404}, {"902", 404}} {
		h.want(c.status, h.ask("GET", "/sales/"+c.id, ""))
	}
}

// TestRateLimits_ComeAfterOtherRefusals sends every malformed, foreign and misdirected request
// while no call has a permit left. Each still gets its own error, in the order of the contract. It
// is not parallel, because its requests would delay the tests of limiters.
func TestRateLimits_ComeAfterOtherRefusals(t *testing.T) {
	h := newFixture(t, `rules: [{name: all, route: "*", by: [global], algorithm: fixed_window,
		limit: 1000000, interval: 24h, onMissingKey: shared}]`)
	f := badrequests.Fixture{
		Secret: secret, PaymentSecret: secret, NoGoods: 1,
		Buyer: buyer(), OtherBuyer: otherBuyer(), Merchant: merchant(),
		OtherMerchant: otherMerchant(),
		GoodsID:       must.Get(strconv.ParseInt(h.sell(nil), 10, 64))(t),
		OtherGoods:    must.Get(strconv.ParseInt(h.sell(nil), 10, 64))(t),
	}
	goods, closed := strconv.FormatInt(f.GoodsID, 10), h.sell(nil)
	f.OrderSn = h.order(buyer(), goods, 1)
	late := dataOf[struct{ RandomPath string }](h, h.want(200, h.path(buyer(), closed))).RandomPath
	h.want(200, h.as(merchant(), "POST", "/admin/sales/"+closed+"/close", ""))
	f.Path = dataOf[struct{ RandomPath string }](h, h.want(200, h.path(buyer(), goods))).RandomPath
	h.want(200, h.as(operator(), "PUT", "/admin/limiters/all/*", `{"limit":1}`))
	require.Eventually(t, func() bool { return h.ask("GET", "/sales", "").Status == 429 },
		time.Minute, 10*time.Millisecond)
	for _, c := range must.Get(badrequests.Cases(f))(t) {
		// Sessions are not in the contract: their limits come before their tokens. A change of a
		// sale that its state forbids has taken a permit. This fixture allows webhooks to its own
		// machine.
		if c.Status == http.StatusConflict || c.Field == "url" || c.Target == "/session" {
			continue
		}
		assert.NoError(t, badrequests.Check(t.Context(), h.client, h.url, c))
	}
	ended := h.want(409, h.as(buyer(), "POST", "/"+late+"/decrStock?goodsId="+closed, ""))
	require.Equal(t, "ENDED", ended.Reason)
	for _, r := range []reply{
		h.ask("GET", "/sales/"+goods, ""),
		h.as(buyer(), "GET", "/orders", ""),
		h.as(buyer(), "POST", "/orders/"+f.OrderSn+"/pay", ""),
		h.as(buyer(), "POST", "/"+f.Path+"/decrStock?goodsId="+goods, ""),
		h.as(merchant(), "POST", "/admin/sales", badrequests.NewSale("title", `"x"`)),
		h.ask("DELETE", "/session", ""),
	} {
		require.Equal(t, "RATE_LIMITED", h.want(429, r).Reason)
	}
	require.Contains(t, h.as(operator(), "GET", "/admin/limiters/all/*", "").Body, `"limit":1`)
}

func TestLimiterAdmin_ReadsAndChangesLimits(t *testing.T) {
	t.Parallel()
	h := newFixture(t, routeRules)
	op, who, goods := operator(), buyer(), h.sell(nil)
	path := "/admin/limiters/randomPath/" + goods

	type setting struct {
		Type, Key, Algorithm, Source string
		PermitsPerSecond             float64
		MaxWaitMillis, Remaining     int64
	}
	call := func(method, path, body string) setting {
		return dataOf[setting](h, h.want(200, h.as(op, method, path, body)))
	}
	byRule := setting{"randomPath", goods, "reserve", "rule", 1000, 1000, 1000}
	require.Equal(t, byRule, call("GET", path, ""))
	set := `{"algorithm": "token_bucket", "permitsPerSecond": 0.01, "maxBurstSeconds": 1}`
	byOperator := setting{"randomPath", goods, "token_bucket", "operator", 0.01, 0, 1}
	require.Equal(t, byOperator, call("PUT", path, set))
	h.want(200, h.path(who, goods))
	h.want(429, h.path(who, goods))
	h.want(200, h.as(op, "DELETE", path, ""))
	require.Equal(t, "rule", call("GET", path, "").Source)
	h.want(200, h.path(who, goods))
	for _, key := range []string{"2001:db8::/64", "/orders", "https://issuer.example/7"} {
		require.Equal(t, key, call("GET", "/admin/limiters/orders/"+key, "").Key)
	}
}

// TestLimiterAdmin_ListsRulesAndOverrides pages through all limits, two at a time.
func TestLimiterAdmin_ListsRulesAndOverrides(t *testing.T) {
	t.Parallel()
	h := newFixture(t, routeRules)
	for _, target := range []string{"randomPath/42", "orders/2001:db8::/64", "orders/*"} {
		h.want(200, h.as(operator(), "PUT", "/admin/limiters/"+target, `{"permitsPerSecond": 7}`))
	}
	type setting struct {
		Type, Key, Source string
		PermitsPerSecond  float64
	}
	var all []setting
	for target := "/admin/limiters?limit=2"; target != ""; {
		page := dataOf[struct {
			Items      []setting
			NextCursor string
		}](h, h.want(200, h.as(operator(), "GET", target, "")))
		all = append(all, page.Items...)
		target = ""
		if page.NextCursor != "" {
			target = "/admin/limiters?limit=2&cursor=" + page.NextCursor
		}
	}
	require.Contains(t, all, setting{"orders", "*", "operator", 7})
	require.Contains(t, all, setting{"orders", "2001:db8::/64", "operator", 7})
	require.Contains(t, all, setting{"randomPath", "*", "rule", 1000})
	require.Contains(t, all, setting{"randomPath", "42", "operator", 7})
	seen := map[[2]string]bool{}
	for _, s := range all {
		require.False(t, seen[[2]string{s.Type, s.Key}], "%+v is listed twice", s)
		seen[[2]string{s.Type, s.Key}] = true
	}
	h.want(403, h.as(merchant(), "GET", "/admin/limiters", ""))
}

// TestLimiterAdmin_TakesRatesWithManyDigits sets 1000/i a second for each i up to 1,000, and a rate
// of 2.5 for a window, which only whole rates have.
func TestLimiterAdmin_TakesRatesWithManyDigits(t *testing.T) {
	t.Parallel()
	h := newFixture(t, routeRules)
	op, goods := operator(), h.sell(nil)
	path := "/admin/limiters/randomPath/" + goods
	for i := 1; i <= 1000; i++ {
		rate := 1000 / float64(i)
		body := fmt.Sprintf(`{"permitsPerSecond": %v}`, rate)
		set := dataOf[struct{ PermitsPerSecond float64 }](h,
			h.want(200, h.as(op, "PUT", path, body)))
		require.InDelta(t, rate, set.PermitsPerSecond, 0, "the answer has the rate as it was sent")
	}
	h.want(400, h.as(op, "PUT", path, `{"algorithm": "fixed_window", "permitsPerSecond": 2.5}`))
	h.want(200, h.as(op, "PUT", path,
		`{"algorithm": "fixed_window", "limit": 5, "intervalSeconds": 2}`))
}

func TestLimiterAdmin_RefusesBadInput(t *testing.T) {
	t.Parallel()
	h := newFixture(t, routeRules)
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
		`{"algorithm": "sub_windows"}`:  "algorithm",
		`{"maxWaitMillis": 1.5}`:        "maxWaitMillis",
		`{"maxWaitMillis": -1}`:         "maxWaitMillis",
		`{"nodelay": "yes"}`:            "nodelay",
		`{"colour": 1}`:                 "colour",
		`{"maxBurstSeconds": 99999999}`: "maxBurstSeconds",
	} {
		r := h.want(400, h.as(op, "PUT", path, body))
		require.Equal(t, field, dataOf[struct{ Field string }](h, r).Field, body)
	}
	r := h.want(200, h.as(op, "GET", path, ""))
	require.Equal(t, "rule", dataOf[struct{ Source string }](h, r).Source, "nothing has changed")
}

// It is not parallel, because it must see the wait of two seconds.
func TestRateLimits_LeavingClientReturnsItsPermit(t *testing.T) {
	h := newFixture(t)
	goods := h.sell(sale{"rate": sale{
		"algorithm": "reserve", "permitsPerSecond": 0.5, "maxBurstSeconds": 1,
		"maxWaitMillis": 3000,
	}})
	h.want(200, h.path(buyer(), goods))

	leaves, leave := context.WithCancel(t.Context())
	target := h.url + "/randomPath?goodsId=" + goods
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
		r := h.as(operator(), "GET", "/admin/limiters/randomPath/"+goods, "")
		return dataOf[struct{ ResetMillis int64 }](h, r).ResetMillis > 2000
	}
	require.Eventually(t, booked, time.Minute, 5*time.Millisecond)
	leave()
	returned := func() bool { return left.Load() && !booked() }
	require.Eventually(t, returned, time.Minute, 5*time.Millisecond)
	h.want(200, h.path(otherBuyer(), goods))
}
