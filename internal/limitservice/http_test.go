package limitservice_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/servers"
)

func TestAcquire_TakesPermitsOfAKey(t *testing.T) {
	s := start(t, servers.Redis(t))
	first := s.acquire(t, `{"rule": "client", "key": "a", "permits": 3}`)
	assert.Equal(t, 200, first.Status)
	assert.Equal(t, map[string]any{
		"granted": 3.0, "waitedMillis": 0.0, "remaining": 2.0, "resetMillis": 3 * 86_400_000.0,
	}, first.Data)
	assert.Equal(t, `"client";r=2;t=259200`, first.Header.Get("RateLimit"))
	assert.Equal(t, `"client";q=5;w=432000`, first.Header.Get("RateLimit-Policy"))
	assert.Equal(t, "application/json", first.Header.Get("Content-Type"))
	assert.Equal(t, "no-store", first.Header.Get("Cache-Control"))
	assert.Equal(t, 4,
		int(s.acquire(t, `{"rule": "client", "key": "b"}`).Data["remaining"].(float64)))

	second := s.acquire(t, `{"rule": "client", "key": "a", "permits": 3}`)
	assert.Equal(t, 429, second.Status)
	assert.Equal(t, "RATE_LIMITED", second.Reason)
	assert.Equal(t, "too many requests", second.Message)
	assert.Equal(t, `"client";r=2;t=259200`, second.Header.Get("RateLimit"))
	login := s.acquire(t, `{"rule": "login", "key": "a", "permits": 3}`)
	assert.Equal(t, "too many attempts", login.Message)
	assert.NotEmpty(t, second.Header.Get("Retry-After"))
	assert.Positive(t, second.Data["retryAfterMillis"])
	never := s.acquire(t, `{"rule": "client", "key": "a", "permits": 6}`)
	assert.Equal(t, 429, never.Status)
	assert.Equal(t, map[string]any{"never": true}, never.Data)
	assert.Empty(t, never.Header.Get("Retry-After"))

	envoy := s.decide(t, descriptor("client=a")).GetStatuses()[0]
	assert.EqualValues(t, 1, envoy.GetLimitRemaining(), "both protocols share the limiter")
}

func TestAcquire_WaitsForPermits(t *testing.T) {
	s := start(t, servers.Redis(t))
	for range 5 {
		got := s.acquire(t, `{"rule": "waiting", "key": "a", "maxWaitMillis": 30000}`)
		assert.Equal(t, 200, got.Status, "%v", got)
	}
	many := s.acquire(t, `{"rule": "waiting", "key": "b", "permits": 100, "maxWaitMillis": 30000}`)
	assert.Equal(t, 99.0, many.Data["waitedMillis"], "at 1000 a second")
}

// acquires acquires permits meanwhile, and sends the status of the answer.
func (s *service) acquires(t *testing.T, body string) <-chan int {
	ended := make(chan int, 1)
	go func() {
		resp, err := http.Post("http://"+s.Addr+"/v1/acquire", "application/json",
			strings.NewReader(body))
		if !assert.NoError(t, err) {
			ended <- 0
			return
		}
		_ = resp.Body.Close()
		ended <- resp.StatusCode
	}()
	return ended
}

// TestAcquire_SlowDecisionIsAnswered stops the program while it waits for Redis, for longer than
// writing an answer takes.
func TestAcquire_SlowDecisionIsAnswered(t *testing.T) {
	redis := servers.Redis(t)
	s := start(t, redis)
	require.NoError(t, redis.Pause())
	answered := s.acquires(t, `{"rule": "client", "key": "a"}`)
	time.Sleep(300 * time.Millisecond) // the request reaches Redis
	require.NoError(t, s.Pause())
	time.Sleep(3 * time.Second)
	require.NoError(t, redis.Resume())
	require.NoError(t, s.Resume())
	assert.Equal(t, 200, <-answered)
}

func TestAcquire_NodeThatStopsKeepsNobodyWaiting(t *testing.T) {
	s := start(t, servers.Redis(t))
	require.Equal(t, 200, s.acquire(t, `{"rule": "slow", "key": "a"}`).Status)
	ended := s.acquires(t, `{"rule": "slow", "key": "a", "maxWaitMillis": 30000}`)
	began := time.Now()
	for s.Metric(t, `seckill_limiter_events_total{event="allowed",rule="slow"}`) < 2 {
		require.Less(t, time.Since(began), time.Minute, "the caller got no permit")
	}
	require.NoError(t, s.Stop())
	assert.Equal(t, 503, <-ended)
}

func TestLimiters_ChangeOnEveryNode(t *testing.T) {
	redis := servers.Redis(t)
	one, two := start(t, redis), start(t, redis)
	const path = "/v1/limiters/client/a%2Fb//c"
	before := one.change(t, http.MethodGet, path, "")
	require.Equal(t, 200, before.Status, "%v", before)
	assert.Equal(t, "rule", before.Data["source"])
	assert.Equal(t, "a/b//c", before.Data["key"])
	assert.EqualValues(t, 5, before.Data["remaining"])

	changed := one.change(t, http.MethodPut, path, `{"burst": 50}`)
	require.Equal(t, 200, changed.Status, "%v", changed)
	assert.Equal(t, "operator", changed.Data["source"])
	assert.EqualValues(t, 50, changed.Data["burst"])
	began := time.Now()
	for two.acquire(t, `{"rule": "client", "key": "a/b//c", "permits": 6}`).Status != 200 {
		require.Less(t, time.Since(began), time.Minute, "the other node keeps the old limit")
	}

	removed := two.change(t, http.MethodDelete, path, "")
	assert.Equal(t, 200, removed.Status)
	assert.Equal(t, map[string]any{}, removed.Data)
	after := one.change(t, http.MethodGet, path, "")
	assert.Equal(t, "rule", after.Data["source"])
	assert.EqualValues(t, 5, after.Data["remaining"], "DELETE resets the limiter")
}

func TestHTTP_BadInput(t *testing.T) {
	s := start(t, servers.Redis(t))
	for _, c := range []struct {
		call, body string
		status     int
		field      string
	}{
		{"POST /v1/acquire", ``, 400, "body"},
		{"POST /v1/acquire", `[]`, 400, "body"},
		{"POST /v1/acquire", `{"rule": "client", "key": "a"} {}`, 400, "body"},
		{"POST /v1/acquire", `{"rule": "client", "key": "a", "rule": "x"}`, 400, "rule"},
		{"POST /v1/acquire", `{"rule": "client", "key": "a", "colour": 1}`, 400, "colour"},
		{"POST /v1/acquire", `{"rule": "client", "key": 7}`, 400, "key"},
		{"POST /v1/acquire", "{\"rule\": \"client\", \"key\": \"\xff\"}", 400, "key"},
		{"POST /v1/acquire", `{"rule": "client"}`, 400, "key"},
		{"POST /v1/acquire", `{"rule": "client", "key": "*"}`, 400, "key"},
		{
			"POST /v1/acquire",
			`{"rule": "client", "key": "` + strings.Repeat("k", 201) + `"}`, 400, "key",
		},
		{
			"POST /v1/acquire",
			`{"rule": "client", "key": "` + strings.Repeat("k", 70_000) + `"}`, 400, "body",
		},
		{"POST /v1/acquire", `{"rule": "client", "key": "a", "permits": 0}`, 400, "permits"},
		{"POST /v1/acquire", `{"rule": "client", "key": "a", "permits": -1}`, 400, "permits"},
		{"POST /v1/acquire", `{"rule": "client", "key": "a", "permits": 1.5}`, 400, "permits"},
		{"POST /v1/acquire", `{"rule": "client", "key": "a", "permits": 1000000000}`, 429, ""},
		{
			"POST /v1/acquire",
			`{"rule": "client", "key": "a", "permits": 1000000001}`, 400, "permits",
		},
		{
			"POST /v1/acquire", `{"rule": "client", "key": "a", "maxWaitMillis": -1}`, 400,
			"maxWaitMillis",
		},
		{"POST /v1/acquire", `{"rule": "client", "key": "a", "permits": 1e30}`, 400, "permits"},
		{
			"POST /v1/acquire", `{"rule": "client", "key": "a", "maxWaitMillis": 30001}`, 400,
			"maxWaitMillis",
		},
		{"POST /v1/acquire", `{"rule": "none", "key": "a"}`, 404, ""},
		{"POST /v1/acquire", `{"key": "a"}`, 400, "rule"},
		{"GET /v1/acquire", ``, 405, ""},
		{"POST /v1/limiters/client/a", `{}`, 405, ""},
		{"GET /v1/limiters/none/a", ``, 404, ""},
		{"GET /v1/limiters/client", ``, 400, "key"},
		{"GET /v1/limiters/client/", ``, 400, "key"},
		{"GET /v1/limiters/client/%FF", ``, 400, "key"},
		{"PUT /v1/limiters/client/a", `{"burst": -1}`, 400, "burst"},
		{"PUT /v1/limiters/client/a", `{"speed": 1}`, 400, "speed"},
		{"PUT /v1/limiters/client/a", `{"algorithm": "magic"}`, 400, "algorithm"},
		{"GET /v1/nothing", ``, 404, ""},
		{"GET /", ``, 404, ""},
	} {
		method, path, _ := strings.Cut(c.call, " ")
		got := s.do(t, method, path, c.body)
		assert.Equal(t, c.status, got.Status, "%s %.80s: %v", c.call, c.body, got)
		assert.Equal(t, c.status, got.Code, "%s %.80s", c.call, c.body)
		assert.NotEmpty(t, got.Message, "%s %.80s", c.call, c.body)
		if c.field != "" {
			assert.Equal(t, c.field, got.Data["field"], "%s %.80s: %v", c.call, c.body, got)
		}
	}
}

// TestReadyz_OneNodeOfAClusterIsNamed checks that the state of Redis and the log name the setting
// whose only address is a node of a cluster. That node refuses most keys.
func TestReadyz_OneNodeOfAClusterIsNamed(t *testing.T) {
	cluster := servers.RedisCluster(t, servers.RedisClusterOptions{})
	s := start(t, cluster.Nodes[0])
	const problem = "it is a node of a Redis Cluster: list several in SECKILL_REDIS_ADDRS"
	var ready answer
	require.Eventually(t, func() bool { // a busy Redis does not answer in time
		ready = s.do(t, "GET", "/readyz", "")
		return assert.ObjectsAreEqual(map[string]any{"redis": problem}, ready.Data["parts"])
	}, 20*time.Second, 100*time.Millisecond)
	assert.Equal(t, 200, ready.Status, "each rule's onError decides")
	s.wrote(t, problem)
}
