package ratelimit_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/internal/testing/testclock"
)

// One test for each fault that well-known limiters have.

const us = time.Microsecond

func tokenBucket(rate, burstSeconds float64) ratelimit.Limit {
	return ratelimit.Limit{
		Algorithm: ratelimit.TokenBucket, PermitsPerSecond: rate, MaxBurstSeconds: burstSeconds,
	}
}

func window(a ratelimit.Algorithm, limit int64, seconds float64) ratelimit.Limit {
	return ratelimit.Limit{Algorithm: a, Limit: limit, IntervalSeconds: seconds, Parts: 10}
}

// kinds has a limit of five for each kind of state that Redis stores.
func kinds(interval float64) []ratelimit.Limit {
	return []ratelimit.Limit{
		tokenBucket(1, 5), window(ratelimit.FixedWindow, 5, interval),
		window(ratelimit.SlidingWindow, 5, interval),
	}
}

// passed counts the calls that pass, one each step until the time is over.
func passed(s *limiter, clock *testclock.Clock, step, total time.Duration) int {
	n := 0
	for at := time.Duration(0); at < total; at += step {
		if s.take(1, 0).Allowed {
			n++
		}
		clock.Add(step)
	}
	return n
}

func TestLimiter_RefillIsNotRoundedDown(t *testing.T) {
	onServersAndMemory(t, func(t *testing.T, made newFunc) {
		clock := testclock.New()
		// 2/s, a call each 499 ms for 100 s: the burst of 2 is never the limit,
		// so all 201 calls pass; flooring the refill passes 101.
		require.Equal(t, 201,
			passed(made(tokenBucket(2, 1), clock), clock, 499*ms, 100*time.Second))
		// 1000/s with 1 s of burst, a call each 0.9 ms for 10 s: 10,000 refilled,
		// 1,000 saved: 10,999 of the 11,112 (the last permit is not whole yet).
		require.Equal(t, 10_999,
			passed(made(tokenBucket(1000, 1), clock), clock, 900*us, 10*time.Second))
	})
}

func TestLimiter_RefillIsNotRoundedUp(t *testing.T) {
	onServersAndMemory(t, func(t *testing.T, made newFunc) {
		clock := testclock.New()
		require.LessOrEqual(t, passed(made(tokenBucket(1, 1), clock), clock, ms, 10*time.Second),
			11)
	})
}

func TestLimiter_IntervalIsNotRoundedToMillis(t *testing.T) {
	onServersAndMemory(t, func(t *testing.T, made newFunc) {
		for _, rate := range []float64{700, 999, 1500, 3000} {
			clock := testclock.New()
			s := made(ratelimit.Limit{
				Algorithm: ratelimit.TokenBucket, PermitsPerSecond: rate, Burst: 10,
			}, clock)
			admittedNow(s)
			n := 0
			for range 1000 {
				clock.Add(ms)
				n += admittedNow(s)
			}
			require.InEpsilon(t, rate, n, 0.001, "%v/s", rate)
		}
	})
}

func TestLimiter_RatesBelowOneASecond(t *testing.T) {
	onEveryStore(t, func(t *testing.T, made newFunc) {
		clock := testclock.New()
		s := made(ratelimit.Limit{
			Algorithm: ratelimit.TokenBucket, Limit: 1, IntervalSeconds: 3, Burst: 1,
		}, clock)
		require.Equal(t, 34, passed(s, clock, 500*ms, 100*time.Second))
		slow := made(tokenBucket(0.1, 1), clock) // less than a permit of burst counts as one
		require.Equal(t, 10, passed(slow, clock, 500*ms, 100*time.Second))
	})
}

func TestLimiter_CallersClockIsIgnored(t *testing.T) {
	client := newClient(t, servers.Redis(t).Addr())
	// The node's clock is no part of it: only tests can pass one in.
	terms := termsOf(t, tokenBucket(0.01, 500))
	a, b := redislimit.New(client, nil), redislimit.New(client, nil)
	granted := 0
	for range 20 {
		for _, node := range []*redislimit.Store{a, b} {
			d := (&limiter{t, node, "one", terms}).take(1, 0)
			if d.Allowed {
				granted++
			}
			require.WithinDuration(t, time.Now(), d.At, time.Minute, "Redis' own clock")
		}
	}
	require.Equal(t, 5, granted)

	// And were a clock passed in that is 1.5 s ahead, the one behind waits for
	// it: alternating between the two mints nothing.
	onServersAndMemory(t, func(t *testing.T, made newFunc) {
		clock := testclock.New()
		s := made(tokenBucket(10, 1), clock)
		n := 0
		for range 200 {
			clock.Add(1500 * ms)
			n += admittedNow(s)
			clock.Add(-1500 * ms)
			n += admittedNow(s)
			clock.Add(10 * ms)
		}
		require.LessOrEqual(t, n, 10+15+20, "burst, 1.5 s ahead, 2 s gone by at 10/s")
	})
}

// admittedNow asks until it is refused.
func admittedNow(s *limiter) int {
	n := 0
	for s.take(1, 0).Allowed {
		n++
	}
	return n
}

func TestLimiter_ClockStepsBack(t *testing.T) {
	onEveryStore(t, func(t *testing.T, made newFunc) {
		for _, l := range kinds(5) {
			clock := testclock.New()
			clock.Add(24 * time.Hour)
			s := made(l, clock)
			require.Equal(t, 5, admittedNow(s), l.Algorithm)
			clock.Add(-time.Hour)
			require.Zero(t, admittedNow(s), "%s: another clock mints nothing", l.Algorithm)
			clock.Add(10 * time.Second)
			require.Equal(t, 5, admittedNow(s), "%s: nor shuts out for an hour", l.Algorithm)
		}
	})
}

func TestLimiter_ChangedLimitRefillsNothing(t *testing.T) {
	onEveryStore(t, func(t *testing.T, made newFunc) {
		for _, l := range append(kinds(60), bursty(1)) {
			s := made(l, testclock.New())
			admittedNow(s)
			s.setLimit(l)
			require.Zero(t, admittedNow(s), l.Algorithm)
			l.PermitsPerSecond *= 2 // and a new rate: what is booked stays booked
			s.setLimit(l)
			require.Zero(t, admittedNow(s), l.Algorithm)
		}
	})
}

func TestLimiter_ChangedIntervalRefillsNothing(t *testing.T) {
	onEveryStore(t, func(t *testing.T, made newFunc) {
		for _, algorithm := range []ratelimit.Algorithm{
			ratelimit.FixedWindow,
			ratelimit.SlidingWindow,
		} {
			s := made(window(algorithm, 5, 60), testclock.New())
			require.Equal(t, 5, admittedNow(s))
			s.setLimit(window(algorithm, 5, 30))
			require.Zero(t, admittedNow(s), algorithm)
			s.setLimit(window(algorithm, 5, 3600))
			require.Zero(t, admittedNow(s), algorithm)
		}
	})
}

func TestStore_NonPositiveRequestsAreErrors(t *testing.T) {
	client := newClient(t, servers.Redis(t).Addr())
	r := redislimit.New(client, nil)
	terms := termsOf(t, tokenBucket(1, 5))
	for _, n := range []int64{0, -1, -1 << 62} {
		ask := ratelimit.Request{Key: "k", Params: terms, N: n}
		_, err := r.TakeEach(t.Context(), []ratelimit.Request{ask})
		require.ErrorIs(t, err, ratelimit.ErrPermits)
		_, err = r.Peek(t.Context(), ask)
		require.ErrorIs(t, err, ratelimit.ErrPermits)
		require.ErrorIs(t, r.Refund(t.Context(), time.Now(), ask), ratelimit.ErrPermits)
	}
	require.Zero(t, client.Exists(t.Context(), "k").Val())
}

func TestStore_DeletedOrForeignKeyIsANewLimiter(t *testing.T) {
	client := newClient(t, servers.Redis(t).Addr())
	ctx := context.Background()
	for _, l := range append(kinds(5), bursty(1)) {
		s := newLimiter(t, redislimit.New(client, testclock.New().Now), "k", l)
		require.True(t, s.take(1, 0).Allowed)
		require.NoError(t, client.Del(ctx, "k").Err())
		require.True(t, s.take(1, 0).Allowed, "deleted")
		require.NoError(t, client.Set(ctx, "k", "12", 0).Err())
		require.True(t, s.take(1, 0).Allowed, "a plain counter of somebody's, without a TTL")
		require.Positive(t, client.PTTL(ctx, "k").Val(), "and it has one now")
		require.NoError(t, client.Del(ctx, "k").Err())
		require.NoError(t, client.HSet(ctx, "k", "tokens", "3").Err())
		require.True(t, s.take(1, 0).Allowed, "another type")
		require.NoError(t, client.Del(ctx, "k").Err())
	}
}

func TestFixedWindow_EndsExactly(t *testing.T) {
	onEveryStore(t, func(t *testing.T, made newFunc) {
		clock := testclock.New()
		s := made(window(ratelimit.FixedWindow, 3, 1), clock)
		require.Equal(t, 3, admittedNow(s))
		clock.Add(time.Second - us)
		d := s.take(1, 0)
		require.False(t, d.Allowed, "1 µs before the end")
		require.Equal(t, us, d.RetryAfter)
		clock.Add(us)
		require.Equal(t, 3, admittedNow(s),
			"exactly at the end, and its first request is not dropped")
	})
}

func TestLeakyMeter_Drains(t *testing.T) {
	onServersAndMemory(t, func(t *testing.T, made newFunc) {
		clock := testclock.New()
		s := made(ratelimit.Limit{Algorithm: ratelimit.LeakyMeter, PermitsPerSecond: 10, Burst: 4},
			clock)
		require.Equal(t, 4, admittedNow(s))
		clock.Add(100 * ms)
		require.Equal(t, 1, admittedNow(s))
		clock.Add(time.Minute)
		require.Equal(t, 4, admittedNow(s))
		queue := made(
			ratelimit.Limit{Algorithm: ratelimit.LeakyQueue, PermitsPerSecond: 10, Burst: 3}, clock)
		for i := range 3 {
			require.Equal(t, time.Duration(i)*100*ms, queue.take(1, anyWait).Wait)
		}
		require.False(t, queue.take(1, anyWait).Allowed, "the queue is full")
	})
}

func TestStore_KeyWithoutTTLRecovers(t *testing.T) {
	client := newClient(t, servers.Redis(t).Addr())
	ctx := context.Background()
	for _, l := range append(kinds(5), bursty(1)) {
		clock := testclock.New()
		s := newLimiter(t, redislimit.New(client, clock.Now), "k", l)
		for admittedNow(s) == 0 {
		}
		require.NoError(t, client.Persist(ctx, "k").Err())
		require.Zero(t, admittedNow(s))
		clock.Add(10 * time.Second)
		require.Positive(t, admittedNow(s), "%s bans nobody for ever", l.Algorithm)
		require.Positive(t, client.PTTL(ctx, "k").Val(), "and the TTL is back")
		require.NoError(t, client.Del(ctx, "k").Err())
	}
}

func TestStore_KeyLivesAsLongAsItsDebt(t *testing.T) {
	client := newClient(t, servers.Redis(t).Addr())
	terms := termsOf(t, ratelimit.Limit{
		Algorithm: ratelimit.Reserve, PermitsPerSecond: 0.01, Burst: 1, MaxWaitMillis: 86_400_000,
	})
	r := redislimit.New(client, nil)
	for range 10 {
		require.True(t, (&limiter{t, r, "k", terms}).take(1, anyWait).Allowed)
	}
	ttl := client.PTTL(t.Context(), "k").Val()
	require.Greater(t, ttl, 990*time.Second, "the key lives as long as the debt")
	require.LessOrEqual(t, ttl, 1001*time.Second, "and no longer")
}

func TestLimit_ZeroIsNotUnlimited(t *testing.T) {
	for field, l := range map[string]ratelimit.Limit{
		"intervalSeconds":  window(ratelimit.FixedWindow, 5, 0),
		"permitsPerSecond": tokenBucket(0, 1),
		"limit":            window(ratelimit.SlidingWindow, 0, 1),
		"burst":            {Algorithm: ratelimit.LeakyMeter, PermitsPerSecond: 1},
		"algorithm":        {},
		"maxWaitMillis": {
			Algorithm: ratelimit.Reserve, PermitsPerSecond: 1, MaxBurstSeconds: 1,
			MaxWaitMillis: -1,
		},
	} {
		var wrong *ratelimit.FieldError
		require.ErrorAs(t, l.Validate(), &wrong)
		require.Equal(t, field, wrong.Field)
	}
}
