package ratelimit_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/internal/testing/testclock"
)

// limiters are what Memory and the Redis store have in common.
type limiters interface {
	TakeEach(ctx context.Context, groups ...[]ratelimit.Ask) ([]ratelimit.Decision, error)
	Peek(ctx context.Context, asks ...ratelimit.Ask) (ratelimit.Decision, error)
	Refund(ctx context.Context, booked time.Time, asks ...ratelimit.Ask) error
}

// subject is one limiter of either form, with its clock in the test's hand.
type subject interface {
	ask(n int64, maxWait time.Duration) ratelimit.Decision
	peek(n int64, maxWait time.Duration) ratelimit.Decision
	refund(n int64, booked time.Time)
	limit(l ratelimit.Limit)
}

type localSubject struct {
	t testing.TB
	l *ratelimit.Local
}

func (s *localSubject) ask(n int64, maxWait time.Duration) ratelimit.Decision {
	d, err := s.l.Reserve(n, maxWait)
	require.NoError(s.t, err)
	return d
}

func (s *localSubject) peek(n int64, maxWait time.Duration) ratelimit.Decision {
	d, err := s.l.Peek(n, maxWait)
	require.NoError(s.t, err)
	return d
}

func (s *localSubject) refund(n int64, booked time.Time) { s.l.Refund(n, booked) }

func (s *localSubject) limit(l ratelimit.Limit) { require.NoError(s.t, s.l.SetLimit(l)) }

type redisSubject struct {
	t     testing.TB
	r     *redislimit.Store
	key   string
	terms ratelimit.Terms
}

func (s *redisSubject) of(n int64, maxWait time.Duration) ratelimit.Ask {
	return ratelimit.Ask{Key: s.key, Terms: s.terms, N: n, MaxWait: maxWait}
}

func (s *redisSubject) ask(n int64, maxWait time.Duration) ratelimit.Decision {
	d, err := s.r.Take(context.Background(), s.of(n, maxWait))
	require.NoError(s.t, err)
	return d
}

func (s *redisSubject) peek(n int64, maxWait time.Duration) ratelimit.Decision {
	d, err := s.r.Peek(context.Background(), s.of(n, maxWait))
	require.NoError(s.t, err)
	return d
}

func (s *redisSubject) refund(n int64, booked time.Time) {
	require.NoError(s.t, s.r.Refund(context.Background(), booked, s.of(n, 0)))
}

func (s *redisSubject) limit(l ratelimit.Limit) {
	terms, err := l.Terms()
	require.NoError(s.t, err)
	s.terms = terms
}

func newClient(t testing.TB, addr string) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func newLocal(t testing.TB, l ratelimit.Limit, clock *testclock.Clock) *localSubject {
	local, err := ratelimit.NewLocal(l, ratelimit.WithClock(clock.Now))
	require.NoError(t, err)
	return &localSubject{t, local}
}

func newRedisSubject(t testing.TB, client redislimit.Client, key string, l ratelimit.Limit, clock *testclock.Clock) *redisSubject {
	s := &redisSubject{t: t, r: redislimit.New(client).WithClock(clock.Now), key: key}
	s.limit(l)
	return s
}

// onEveryForm runs a test on the in-process form, on a real Redis and on
// miniredis, which standalone runs on.
func onEveryForm(t *testing.T, run func(t *testing.T, made func(ratelimit.Limit, *testclock.Clock) subject)) {
	onBothForms(t, run)
	t.Run("miniredis", func(t *testing.T) { overRedis(t, newClient(t, miniredis.RunT(t).Addr()), run) })
}

func overRedis(t *testing.T, client redislimit.Client, run func(t *testing.T, made func(ratelimit.Limit, *testclock.Clock) subject)) {
	keys := 0
	run(t, func(l ratelimit.Limit, c *testclock.Clock) subject {
		keys++
		return newRedisSubject(t, client, fmt.Sprintf("limit:%d", keys), l, c)
	})
}

// newCluster is an empty cluster, whose every key is in a slot of its own.
func newCluster(t testing.TB) *redis.ClusterClient {
	cluster := env.RedisCluster(t)
	require.NoError(t, cluster.FlushAll(t.Context()))
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// onBothForms leaves miniredis out, which takes a second for 2,000 decisions.
func onBothForms(t *testing.T, run func(t *testing.T, made func(ratelimit.Limit, *testclock.Clock) subject)) {
	t.Run("local", func(t *testing.T) {
		run(t, func(l ratelimit.Limit, c *testclock.Clock) subject { return newLocal(t, l, c) })
	})
	t.Run("redis-cluster", func(t *testing.T) { overRedis(t, newCluster(t), run) })
	t.Run("redis", func(t *testing.T) { overRedis(t, newClient(t, servers.Redis(t).Addr()), run) })
}
