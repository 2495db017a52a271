package ratelimit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/testing/testclock"
)

const ms = time.Millisecond

func bursty(rate float64) ratelimit.Limit {
	return ratelimit.Limit{Algorithm: ratelimit.SmoothBursty, PermitsPerSecond: rate, MaxBurstSeconds: 1, MaxWaitMillis: 3_600_000}
}

// acquire is Guava's: it books, and the clock sleeps the wait away.
func acquire(t *testing.T, s *limiter, clock *testclock.Clock, n int64) time.Duration {
	d := s.take(n, anyWait)
	require.True(t, d.Allowed, "%+v", d)
	clock.Add(d.Wait)
	return d.Wait
}

func TestGuava_BurstyWaits(t *testing.T) {
	for name, c := range map[string]struct {
		rate    float64
		permits []int64
		waits   []time.Duration
	}{
		"testSimple":        {5, []int64{1, 1, 1}, []time.Duration{0, 200 * ms, 200 * ms}},
		"testSimpleWeights": {1, []int64{1, 1, 2, 4, 8, 1}, []time.Duration{0, 1000 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 8000 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryStore(t, func(t *testing.T, made newFunc) {
				clock := testclock.New()
				s := made(bursty(c.rate), clock)
				for i, n := range c.permits {
					require.Equal(t, c.waits[i], acquire(t, s, clock, n), "acquire %d", i)
				}
			})
		})
	}
}

func TestTokenBucket_GCRA(t *testing.T) {
	onEveryStore(t, func(t *testing.T, made newFunc) {
		s := made(ratelimit.Limit{Algorithm: ratelimit.TokenBucket, PermitsPerSecond: 1, MaxBurstSeconds: 5}, testclock.New())
		for left := int64(4); left >= 0; left-- {
			d := s.take(1, 0)
			require.True(t, d.Allowed)
			require.Equal(t, left, d.Remaining)
			require.Equal(t, time.Duration(5-left)*time.Second, d.ResetAfter)
		}
		sixth := s.take(1, 0)
		require.False(t, sixth.Allowed)
		require.Equal(t, time.Second, sixth.RetryAfter)
		require.False(t, sixth.Never)
		six := s.take(6, 0)
		require.True(t, six.Never)
		require.Zero(t, six.RetryAfter)
	})
}

func TestNginx_LimitReq(t *testing.T) {
	const denied = time.Duration(-1)
	for name, c := range map[string]struct {
		limit ratelimit.Limit
		waits []time.Duration
	}{
		"2/s burst 5":                {ratelimit.Limit{PermitsPerSecond: 2, Burst: 5}, []time.Duration{0, 500 * ms}},
		"30/min burst 2 delay 1":     {ratelimit.Limit{PermitsPerSecond: 0.5, Burst: 2, Delay: 1}, []time.Duration{0, 0, 2 * time.Second, denied}},
		"30 per 60 s says the same":  {ratelimit.Limit{Limit: 30, IntervalSeconds: 60, Burst: 2, Delay: 1}, []time.Duration{0, 0, 2 * time.Second, denied}},
		"nodelay lets burst+1 go on": {ratelimit.Limit{PermitsPerSecond: 2, Burst: 2, NoDelay: true}, []time.Duration{0, 0, 0, denied}},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryStore(t, func(t *testing.T, made newFunc) {
				c.limit.Algorithm = ratelimit.Nginx
				s := made(c.limit, testclock.New())
				for i, want := range c.waits {
					d := s.take(1, anyWait)
					require.Equal(t, want != denied, d.Allowed, "request %d", i)
					if want != denied {
						require.Equal(t, want, d.Wait, "request %d", i)
					}
				}
			})
		})
	}
}
