package edge

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// asking returns the deployed settings with the test's Redis and the given shared limits of
// /randomPath.
func asking(t *testing.T, redisAddr, rules string) string {
	host, port, err := net.SplitHostPort(redisAddr)
	require.NoError(t, err)
	text := must.Get(os.ReadFile(deployed + "/site/settings.lua"))(t)
	settings := strings.Replace(string(text), `host = "redis", port = 6379`,
		fmt.Sprintf(`host = %q, port = %s`, host, port), 1)
	before, rest, found := strings.Cut(settings, "randomPath = {\n")
	require.True(t, found)
	_, after, found := strings.Cut(rest, "    },\n    decrStock")
	require.True(t, found)
	return before + "randomPath = { " + rules + " },\n    decrStock" + after
}

// patiently is asking, with so much time for Redis that a busy machine lets no request through
// without an answer.
func patiently(t *testing.T, redisAddr, rules string) string {
	settings := asking(t, redisAddr, rules)
	require.Contains(t, settings, "timeout_ms = 50,")
	return strings.Replace(settings, "timeout_ms = 50,", "timeout_ms = 10000,", 1)
}

// sharing is an edge that checks these limits in Redis, patiently.
func sharing(t *testing.T, server *servers.RedisServer, rules string) *edge {
	return start(t, open(newAPI(t).addr()).with("settings.lua", patiently(t, server.Addr(), rules)))
}

// sharingBucket returns two edges that check a bucket in Redis. If Redis does not answer, the first
// lets a request through and the second refuses it.
func sharingBucket(t *testing.T, server *servers.RedisServer) (lenient, shut *edge) {
	settings := asking(t, server.Addr(), bucket)
	s := open(newAPI(t).addr())
	return start(t, s.with("settings.lua", settings)), start(t, s.with("settings.lua",
		strings.Replace(settings, `on_redis_error = "open"`, `on_redis_error = "closed"`, 1)))
}

// These limits add no permit while a test runs.
const (
	window = `{ rule = "perAddress", by = "address", window = { 10, 600 } },`
	bucket = `{ rule = "shared", by = "goods", bucket = { 0.001, 10 } },`
)

// published starts a Redis in which an API has published the script.
func published(t *testing.T) (*servers.RedisServer, *redis.Client) {
	server := servers.Redis(t)
	client := clientOf(t, server)
	publish(t, client)
	return server, client
}

func clientOf(t *testing.T, server *servers.RedisServer) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func publish(t *testing.T, client *redis.Client) {
	require.NoError(t, redislimit.NewPublisher(client).Publish(t.Context()))
}

// TestSharedLimit_TenInAWindowOverAllEdges checks that all nginx count an address together. The
// edge gives the API the number of each request within the window.
func TestSharedLimit_TenInAWindowOverAllEdges(t *testing.T) {
	server, _ := published(t)
	api := newAPI(t)
	s := open(api.addr()).with("settings.lua", patiently(t, server.Addr(), window))
	edges := [2]*edge{start(t, s), start(t, s)}
	for i := range 10 {
		a := edges[i%2].path("1", append(from("203.0.113.1"), "X-Edge-Count", "forged")...)
		require.Equal(t, "OK", a.Reason, a.Body)
		require.Equal(t, []string{fmt.Sprint(i + 1)}, api.lastHeader().Values("X-Edge-Count"))
	}
	for i := range 6 {
		a := edges[i%2].path("1", from("203.0.113.1")...)
		limited(t, a)
		require.Equal(t, `"perAddress";q=10;w=600`, a.Header.Get("RateLimit-Policy"))
	}
	require.EqualValues(t, 10, api.heard.Load())
	require.Equal(t, "OK", edges[0].path("1", from("203.0.113.2")...).Reason)
	for i := range 12 {
		require.Equal(t, "OK", edges[0].path("1", from(fmt.Sprintf("10.213.7.%d", 9))...).Reason,
			"exempt: %d", i)
	}
	got := edges[0].crowd(40, func(i int) answer {
		return edges[i%2].path("1", from(fmt.Sprintf("2001:db8::%x", i))...)
	})
	require.Equal(t, map[string]int{"OK": 10, "RATE_LIMITED": 30}, got, "one /64, all at once")
}

// TestSharedLimit_PreflightsAreNotCounted checks that a browser of another site's page can still
// ask whether it may call when the limit is used up. It then reads the denial.
func TestSharedLimit_PreflightsAreNotCounted(t *testing.T) {
	server, _ := published(t)
	e := sharing(t, server, window)
	preflight := func() string {
		return e.ask(http.MethodOptions, "/randomPath?goodsId=1", from("203.0.113.1")...).Reason
	}
	require.Equal(t, "OK", preflight())
	for range 10 {
		require.Equal(t, "OK", e.path("1", from("203.0.113.1")...).Reason)
	}
	limited(t, e.path("1", from("203.0.113.1")...))
	require.Equal(t, "OK", preflight())
}

// TestSharedLimit_SeveralAreChargedTogether checks that a denied request uses up no permit of any
// limit.
func TestSharedLimit_SeveralAreChargedTogether(t *testing.T) {
	server, _ := published(t)
	e := sharing(t, server, window+`{ rule = "tight", by = "goods", bucket = { 0.001, 2 } },`)
	for i := range 6 {
		require.Equal(t, i < 2, e.path("1").Reason == "OK")
	}
	for i := range 12 {
		require.Equal(t, i < 8, e.path(fmt.Sprint(2+i)).Reason == "OK", i)
	}
}

// TestSharedLimit_DenialIsRemembered checks that an edge caches a denial. Further requests do not
// reach Redis until it could grant one.
func TestSharedLimit_DenialIsRemembered(t *testing.T) {
	server, client := published(t)
	e := sharing(t, server, window)
	for range 11 {
		e.path("1")
	}
	// The edge caches a denial for a second at most, so some of the requests may reach Redis. The
	// test requires that most of them do not.
	before := calls(t, client, "evalsha")
	for range 200 {
		limited(t, e.path("1"))
	}
	require.Less(t, calls(t, client, "evalsha")-before, 100)
}

// calls counts how often a command was called.
func calls(t *testing.T, client *redis.Client, command string) int {
	return figure(t, client, "commandstats", "cmdstat_"+command+":calls=")
}

// figure returns the number that follows a text in INFO. It returns 0 where the text is absent.
func figure(t *testing.T, client *redis.Client, section, text string) (n int) {
	info := must.Get(client.Info(t.Context(), section).Result())(t)
	if _, after, found := strings.Cut(info, text); found {
		_, err := fmt.Sscanf(after, "%d", &n)
		require.NoError(t, err)
	}
	return n
}

// TestSharedLimit_ConnectionsToRedisAreKept checks that requests share one connection for each
// worker.
func TestSharedLimit_ConnectionsToRedisAreKept(t *testing.T) {
	server, client := published(t)
	e := sharing(t, server, bucket)
	connections := func() int { return figure(t, client, "stats", "total_connections_received:") }
	before, asked := connections(), calls(t, client, "evalsha")
	for i := range 100 {
		require.Equal(t, "OK", e.path(fmt.Sprint(i+1)).Reason)
	}
	require.Equal(t, 100, calls(t, client, "evalsha")-asked)
	require.LessOrEqual(t, connections()-before, 2, "one for each worker")
}

// TestScript_IsLoadedByTheAPIOnly starts the edge before a script is published, and flushes the
// script later. Both times the edge follows its policy for Redis errors and loads no copy of the
// script. It uses each script that an API publishes.
func TestScript_IsLoadedByTheAPIOnly(t *testing.T) {
	server := servers.Redis(t)
	client := clientOf(t, server)
	e, shut := sharingBucket(t, server)
	require.Equal(t, "OK", e.path("1").Reason)
	require.Equal(t, "UNAVAILABLE", shut.path("1").Reason)
	publish(t, client)
	e.becomes("RATE_LIMITED", "1")
	shut.becomes("OK", "2")
	require.NoError(t, client.ScriptFlush(t.Context()).Err())
	for i := range 20 {
		require.Equal(t, "OK", e.path(fmt.Sprint(3+i)).Reason, "open: the API decides")
		a := shut.path("2")
		require.Equal(t, []any{503, "UNAVAILABLE", "1"},
			[]any{a.Status, a.Reason, a.Header.Get("Retry-After")}, a.Body)
		shaped(t, a)
	}
	require.Zero(t, calls(t, client, "eval"))
	require.Equal(t, 1, calls(t, client, "script|load"), "only the API loads the script")
	publish(t, client)
	shut.becomes("OK", "2")
	e.becomes("RATE_LIMITED", "1")

	newer := must.Get(client.ScriptLoad(t.Context(),
		"return {0, 0, 0, 0, 0, 5000000, 5000000}").Result())(t) // denies every request
	require.NoError(t, client.Set(t.Context(), redislimit.ScriptKey, newer, 0).Err())
	var a answer
	goods := 100 // each has a full bucket
	require.Eventually(t, func() bool {
		goods++
		a = e.path(fmt.Sprint(goods))
		return a.Reason == "RATE_LIMITED"
	}, patience, tick)
	require.Equal(t, "5", a.Header.Get("Retry-After"))
}

// TestSharedLimit_WhileRedisIsAway checks that the edge follows its policy while Redis is a
// replica, as after a failover, or paused or dead. For a replica the log has the cause.
func TestSharedLimit_WhileRedisIsAway(t *testing.T) {
	server, client := published(t)
	e, shut := sharingBucket(t, server)
	require.Equal(t, "OK", e.path("1").Reason)
	for _, fault := range []struct {
		name         string
		do, restored func() error
	}{
		{"a replica", func() error {
			return client.ReplicaOf(t.Context(), "127.0.0.1", "1").Err()
		}, func() error { return client.ReplicaOf(t.Context(), "NO", "ONE").Err() }},
		{"asleep", server.Pause, server.Resume},
		{"killed", server.Kill, func() error { return server.Restart(t.Context()) }},
	} {
		require.NoError(t, fault.do(), fault.name)
		for i := range 50 {
			require.Equal(t, "OK", e.path(fmt.Sprint(2+i)).Reason, fault.name)
			// The edge logs one error a second, so a later request may log none.
			if i == 0 && fault.name == "a replica" {
				require.Eventually(t, func() bool {
					return strings.Contains(e.nginx.Log(), "edge: redis: ask: READONLY")
				}, patience, tick)
			}
			require.Equal(t, "UNAVAILABLE", shut.path("1").Reason, fault.name)
		}
		require.NoError(t, fault.restored(), fault.name)
		require.Eventually(t, func() bool {
			return client.Ping(t.Context()).Err() == nil
		}, patience, tick)
		publish(t, client)
		shut.becomes("OK", "1")
	}
}

// TestSharedLimit_WhileDNSIsSilent uses the deployed resolver settings with a DNS server that
// receives and never answers. By default nginx waits for it for 30 s.
func TestSharedLimit_WhileDNSIsSilent(t *testing.T) {
	var listen net.ListenConfig
	silent := must.Get(listen.ListenPacket(t.Context(), "udp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = silent.Close() })
	text := string(must.Get(os.ReadFile(deployed + "/site/upstream.conf"))(t))
	api := newAPI(t)
	for old, replacement := range map[string]string{
		"resolver 127.0.0.11 ":     "resolver " + silent.LocalAddr().String() + " ",
		"server api-on-edge:8080 ": "server " + api.addr() + " ",
	} {
		require.Contains(t, text, old)
		text = strings.Replace(text, old, replacement, 1)
	}
	settings := string(must.Get(os.ReadFile(deployed + "/site/settings.lua"))(t))
	e := start(t, open(api.addr()).with("upstream.conf", text).with("settings.lua", settings))
	began := time.Now()
	require.Equal(t, "OK", e.path("1").Reason)
	require.Less(t, time.Since(began), 20*time.Second)
	require.Regexp(t, `edge: redis: connect: .*; check redis:6379 in site/settings\.lua, and `+
		`EDGE_REDIS_PASSWORD, which is not set`, e.nginx.Log())
}
