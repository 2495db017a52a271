package ratelimit_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/testing/servers"
)

// handClock is moved by hand. It starts on a whole day, so that aligned
// windows begin with it.
type handClock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *handClock { return &handClock{at: time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)} }

func (c *handClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *handClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
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
	r     *ratelimit.Redis
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

func newLocal(t testing.TB, l ratelimit.Limit, clock *handClock) *localSubject {
	local, err := ratelimit.NewLocal(l, ratelimit.WithClock(clock.now))
	require.NoError(t, err)
	return &localSubject{t, local}
}

func newRedisSubject(t testing.TB, client ratelimit.Client, key string, l ratelimit.Limit, clock *handClock) *redisSubject {
	s := &redisSubject{t: t, r: ratelimit.NewRedis(client).WithClock(clock.now), key: key}
	s.limit(l)
	return s
}

// onEveryForm runs a test on the in-process form, on a real Redis and on
// miniredis, which standalone runs on.
func onEveryForm(t *testing.T, run func(t *testing.T, made func(ratelimit.Limit, *handClock) subject)) {
	onBothForms(t, run)
	t.Run("miniredis", func(t *testing.T) { overRedis(t, newClient(t, miniredis.RunT(t).Addr()), run) })
}

func overRedis(t *testing.T, client ratelimit.Client, run func(t *testing.T, made func(ratelimit.Limit, *handClock) subject)) {
	keys := 0
	run(t, func(l ratelimit.Limit, c *handClock) subject {
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
func onBothForms(t *testing.T, run func(t *testing.T, made func(ratelimit.Limit, *handClock) subject)) {
	t.Run("local", func(t *testing.T) {
		run(t, func(l ratelimit.Limit, c *handClock) subject { return newLocal(t, l, c) })
	})
	t.Run("redis-cluster", func(t *testing.T) { overRedis(t, newCluster(t), run) })
	t.Run("redis", func(t *testing.T) { overRedis(t, newClient(t, servers.Redis(t).Addr()), run) })
}
