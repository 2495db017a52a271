package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/ratelimit"
	"flashsale.dev/seckill/ratelimit/httplimit"
)

// hourly has a clock that stands still, so that a slow machine gets the same headers.
func hourly(t *testing.T, burst int) *ratelimit.Limiter {
	now := time.Now()
	l := must.Get(ratelimit.New(ratelimit.Memory(),
		ratelimit.Limit{Permits: 1, Per: time.Hour, Burst: burst},
		ratelimit.Clock(func() time.Time { return now })))(t)
	t.Cleanup(l.Close)
	return l
}

// ok is the handler behind the middleware.
func ok(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }

func get(h http.Handler, from string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = from
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestHandler_LimitsByAddress(t *testing.T) {
	h := httplimit.New(hourly(t, 2), httplimit.Options{KeyFunc: httplimit.RemoteIP}).
		Handler(http.HandlerFunc(ok))
	first := get(h, "10.0.0.1:1000")
	assert.Equal(t, "ok", first.Body.String())
	assert.Equal(t, `"limiter";r=1;t=3600`, first.Header().Get("RateLimit"))
	assert.Equal(t, `"limiter";q=2;w=7200`, first.Header().Get("RateLimit-Policy"))
	assert.Empty(t, first.Header().Get("Retry-After"))
	assert.Equal(t, http.StatusOK, get(h, "10.0.0.1:1001").Code)
	denied := get(h, "10.0.0.1:1002")
	assert.Equal(t, http.StatusTooManyRequests, denied.Code)
	assert.Equal(t, "3600", denied.Header().Get("Retry-After"))
	assert.Contains(t, denied.Header().Get("RateLimit"), "r=0")
	for from, status := range map[string]int{"10.0.0.2:1": 200, "not an address": 200} {
		assert.Equal(t, status, get(h, from).Code, from)
	}
}

func TestRemoteIP_CountsIPv6ByItsFirst64Bits(t *testing.T) {
	key := func(from string) string { return httplimit.RemoteIP(&http.Request{RemoteAddr: from}) }
	assert.Equal(t, key("[2001:db8:1:2::1]:5"), key("[2001:db8:1:2:ffff::2]:6"))
	assert.NotEqual(t, key("[2001:db8:1:2::1]:5"), key("[2001:db8:1:3::1]:5"))
	assert.Equal(t, "10.0.0.1", key("[::ffff:10.0.0.1]:5"))
	assert.Empty(t, key("pipe"))
}

func TestHandler_OnDeniedAnswers(t *testing.T) {
	h := httplimit.New(hourly(t, 1), httplimit.Options{
		KeyFunc: httplimit.Header("X-API-Key"),
		OnDenied: func(w http.ResponseWriter, r *http.Request, d ratelimit.Decision) {
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, d.Allowed, d.Remaining, d.RetryAfter > 0)
		},
	}).Handler(http.HandlerFunc(ok))
	assert.Equal(t, http.StatusOK, get(h, "a:1").Code)
	denied := get(h, "b:1") // without the header all share one limiter
	assert.Equal(t, http.StatusTeapot, denied.Code)
	assert.Equal(t, "false 0 true", denied.Body.String())
}

func TestHandler_WithoutKeyFuncPanicsBeforeTheFirstRequest(t *testing.T) {
	limited := httplimit.New(hourly(t, 1), httplimit.Options{})
	assert.PanicsWithValue(t, "httplimit: Options.KeyFunc is nil", func() {
		limited.Handler(http.HandlerFunc(ok))
	})
	assert.True(t, limited.Admit(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil), "a"),
		"an adapter has its own keys")
}

func TestHandler_WithoutRedisIsUnavailable(t *testing.T) {
	client := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:1", ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1,
	})
	defer client.Close()
	l := must.Get(ratelimit.New(ratelimit.Redis(client),
		ratelimit.Limit{Permits: 1, Per: time.Second}))(t)
	defer l.Close()
	options := httplimit.Options{KeyFunc: httplimit.RemoteIP}
	byDefault := get(httplimit.New(l, options).Handler(http.HandlerFunc(ok)), "a:1")
	assert.Equal(t, http.StatusServiceUnavailable, byDefault.Code)
	options.OnError = func(w http.ResponseWriter, _ *http.Request, err error) {
		assert.True(t, errors.Is(err, ratelimit.ErrUnavailable))
		w.WriteHeader(http.StatusBadGateway)
	}
	own := get(httplimit.New(l, options).Handler(http.HandlerFunc(ok)), "a:1")
	assert.Equal(t, http.StatusBadGateway, own.Code)
}

func TestHandler_WaitsForPermits(t *testing.T) {
	l := must.Get(ratelimit.New(ratelimit.Memory(),
		ratelimit.Limit{Permits: 1000, Per: time.Second, Burst: 1}))(t)
	h := httplimit.New(l, httplimit.Options{KeyFunc: httplimit.RemoteIP, Wait: true}).
		Handler(http.HandlerFunc(ok))
	for range 10 {
		assert.Equal(t, http.StatusOK, get(h, "a:1").Code)
	}
}

func TestHandler_ClientThatLeavesGetsNoAnswer(t *testing.T) {
	l := hourly(t, 1)
	h := httplimit.New(l, httplimit.Options{KeyFunc: httplimit.RemoteIP}).
		Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("served") }))
	gone, leave := context.WithCancel(t.Context())
	leave()
	r := httptest.NewRequestWithContext(gone, http.MethodGet, "/", nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	assert.Empty(t, w.Body.String())
	peek := must.Get(l.Peek(t.Context(), httplimit.RemoteIP(r)))(t)
	assert.True(t, peek.Allowed, "it took a permit")
}

// TestHandler_DeadlineIsAnError checks that a request whose time is over gets an answer. Without
// one, net/http would send 200 for a request that was not served.
func TestHandler_DeadlineIsAnError(t *testing.T) {
	h := httplimit.New(hourly(t, 1), httplimit.Options{KeyFunc: httplimit.RemoteIP}).
		Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("served") }))
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(late, http.MethodGet, "/", nil))
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
}

// TestHandler_HeadersFollowTheDraft checks RateLimit and RateLimit-Policy of draft 11 over HTTP.
func TestHandler_HeadersFollowTheDraft(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	middleware := func(limit ratelimit.Limit, options ...ratelimit.Option) http.Handler {
		options = append(options, ratelimit.Clock(func() time.Time { return at }))
		l := must.Get(ratelimit.New(ratelimit.Memory(), limit, options...))(t)
		t.Cleanup(l.Close)
		return httplimit.New(l, httplimit.Options{KeyFunc: httplimit.RemoteIP, Wait: true}).
			Handler(http.HandlerFunc(ok))
	}
	seconds := func(h http.Header, name, pattern string) int {
		found := regexp.MustCompile(pattern).FindStringSubmatch(h.Get(name))
		require.Len(t, found, 2, "%s: %q", name, h.Get(name))
		return must.Get(strconv.Atoi(found[1]))(t)
	}
	for name, limit := range map[string]ratelimit.Limit{
		"bucket":      {Permits: 10, Per: time.Second, Burst: 1, MaxWait: -1},
		"slow bucket": {Permits: 1, Per: 90 * time.Second, Burst: 1, MaxWait: -1},
		"window":      {Permits: 1, Per: 90 * time.Second, Algorithm: ratelimit.FixedWindow},
		"log": {
			Permits: 1, Per: 2500 * time.Millisecond, Algorithm: ratelimit.SlidingWindow,
		},
		"short window": {
			Permits: 1, Per: 100 * time.Millisecond, Algorithm: ratelimit.FixedWindow,
		},
		"large request": {Permits: 1, Per: time.Hour, MaxWait: -1},
	} {
		t.Run(name, func(t *testing.T) {
			h := middleware(limit)
			require.Equal(t, http.StatusOK, get(h, "10.0.0.1:1").Code)
			denied := get(h, "10.0.0.1:1")
			require.Equal(t, http.StatusTooManyRequests, denied.Code)
			retry := seconds(denied.Header(), "Retry-After", `^(\d+)$`)
			reset := seconds(denied.Header(), "RateLimit", `^"limiter";r=0;t=(\d+)$`)
			assert.GreaterOrEqual(t, reset, retry)
			policy := denied.Header().Get("RateLimit-Policy")
			if limit.Per < time.Second || name == "bucket" {
				assert.Equal(t, `"limiter";q=1`, policy, "w has whole seconds")
			} else {
				w := int((limit.Per + time.Second - 1) / time.Second)
				assert.Equal(t, fmt.Sprintf(`"limiter";q=1;w=%d`, w), policy)
			}
		})
	}
}

// TestHandler_OpenOnErrorCountsNothing has a Redis that does not answer. The answer has the policy,
// and no r, because nobody knows how many permits remain.
func TestHandler_OpenOnErrorCountsNothing(t *testing.T) {
	client := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:1", ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1,
	})
	t.Cleanup(func() { _ = client.Close() })
	for name, c := range map[string]struct {
		option ratelimit.Option
		limit  string
	}{
		"open":  {ratelimit.FailOpen(), ""},
		"local": {ratelimit.FailLocal(), `"limiter";r=4;t=720`},
	} {
		l := must.Get(ratelimit.New(ratelimit.Redis(client),
			ratelimit.Limit{Permits: 5, Per: time.Hour}, c.option))(t)
		t.Cleanup(l.Close)
		answer := get(httplimit.New(l, httplimit.Options{KeyFunc: httplimit.RemoteIP}).
			Handler(http.HandlerFunc(ok)), "10.0.0.1:1")
		assert.Equal(t, http.StatusOK, answer.Code, name)
		assert.Equal(t, c.limit, answer.Header().Get("RateLimit"), name)
		assert.Equal(t, `"limiter";q=5;w=3600`, answer.Header().Get("RateLimit-Policy"), name)
	}
}
