package ratelimit_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/internal/testing/testclock"
)

// anyWait exceeds the longest wait that any limit allows.
const anyWait = time.Duration(math.MaxInt64)

func paramsOf(t require.TestingT, l ratelimit.Limit) ratelimit.Params {
	return must.Get(l.Params())(t)
}

// limiter is one key of a store. The test moves the store's clock.
type limiter struct {
	t     require.TestingT
	store gate.Store
	key   string
	terms ratelimit.Params
}

func newLimiter(t require.TestingT, s gate.Store, key string, l ratelimit.Limit) *limiter {
	made := &limiter{t: t, store: s, key: key}
	made.setLimit(l)
	return made
}

// newLocal returns a limiter over the in-process store.
func newLocal(t require.TestingT, l ratelimit.Limit, clock *testclock.Clock) *limiter {
	return newLimiter(t, ratelimit.NewMemory(clock.Now), "k", l)
}

func (l *limiter) request(n int64, maxWait time.Duration) ratelimit.Request {
	return ratelimit.Request{Key: l.key, Params: l.terms, N: n, MaxWait: maxWait}
}

func (l *limiter) take(n int64, maxWait time.Duration) ratelimit.Decision {
	return must.Get(l.store.TakeEach(context.Background(), l.request(n, maxWait)))(l.t)[0]
}

// peek needs the in-process store.
func (l *limiter) peek(n int64, maxWait time.Duration) ratelimit.Decision {
	memory := l.store.(*ratelimit.Memory)
	return must.Get(memory.Peek(context.Background(), l.request(n, maxWait)))(l.t)
}

func (l *limiter) refund(n int64, taken ratelimit.Decision) {
	require.NoError(l.t, l.store.Refund(context.Background(), taken, l.request(n, 0)))
}

func (l *limiter) setLimit(limit ratelimit.Limit) {
	l.terms = paramsOf(l.t, limit)
}

func newClient(t testing.TB, addr string) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// newFunc returns a limiter without state on a clock.
type newFunc = func(ratelimit.Limit, *testclock.Clock) *limiter

// onEveryStore runs a test in process, on a real Redis, on a Redis Cluster and on miniredis. The
// standalone program uses miniredis.
func onEveryStore(t *testing.T, run func(t *testing.T, made newFunc)) {
	onServersAndMemory(t, run)
	t.Run("miniredis",
		func(t *testing.T) { onRedis(t, newClient(t, miniredis.RunT(t).Addr()), run) })
}

// onServersAndMemory omits miniredis, which needs a second for 2,000 decisions.
func onServersAndMemory(t *testing.T, run func(t *testing.T, made newFunc)) {
	t.Run("memory", func(t *testing.T) {
		run(t, func(l ratelimit.Limit, c *testclock.Clock) *limiter { return newLocal(t, l, c) })
	})
	t.Run("redis-cluster", func(t *testing.T) { onRedis(t, newCluster(t), run) })
	t.Run("redis", func(t *testing.T) { onRedis(t, newClient(t, servers.Redis(t).Addr()), run) })
}

func onRedis(t *testing.T, client redis.UniversalClient, run func(t *testing.T, made newFunc)) {
	keys := 0
	run(t, func(l ratelimit.Limit, c *testclock.Clock) *limiter {
		keys++
		return newLimiter(t, redislimit.New(client, c.Now), fmt.Sprintf("limit:%d", keys), l)
	})
}

// newCluster returns a client of an empty cluster that holds each key in a slot of its own.
func newCluster(t testing.TB) *redis.ClusterClient {
	cluster := env.RedisCluster(t)
	require.NoError(t, cluster.FlushAll(t.Context()))
	client := redis.NewClusterClient(
		&redis.ClusterOptions{Addrs: cluster.Addrs(), DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

var env = servers.NewSuite()

func TestMain(m *testing.M) { goleak.VerifyTestMain(env.Around(m)) }
