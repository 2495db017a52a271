package ratelimit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/testing/testclock"
)

// burstOf returns a limit whose burst is a number of permits.
func burstOf(a ratelimit.Algorithm, rate float64, burst int64) ratelimit.Limit {
	return ratelimit.Limit{Algorithm: a, PermitsPerSecond: rate, Burst: burst, NoDelay: true}
}

// admittedIn asks each millisecond for a time and counts the admissions.
func admittedIn(s *limiter, clock *testclock.Clock, length time.Duration) int {
	n := 0
	for range length / ms {
		n += admittedNow(s)
		clock.Add(ms)
	}
	return n
}

// TestLimiter_ChangedRateKeepsPermits lowers and raises the rate of a drained limiter whose burst is
// in permits. The permits taken stay taken. A slower limiter opens no burst, and a faster one does
// not deny for the time that these permits took at the old rate.
func TestLimiter_ChangedRateKeepsPermits(t *testing.T) {
	onEveryStore(t, func(t *testing.T, made newFunc) {
		for _, a := range []ratelimit.Algorithm{
			ratelimit.TokenBucket, ratelimit.LeakyMeter, ratelimit.Nginx,
		} {
			clock := testclock.New()
			s := made(burstOf(a, 1000, 100), clock)
			require.GreaterOrEqual(t, admittedNow(s), 100)
			s.setLimit(burstOf(a, 10, 100))
			require.Zero(t, admittedNow(s), a)
			require.Equal(t, 10, admittedIn(s, clock, time.Second+ms), "%s: one second at 10/s", a)

			s = made(burstOf(a, 500, 40), clock)
			require.GreaterOrEqual(t, admittedNow(s), 40)
			s.setLimit(burstOf(a, 10, 40))
			require.Zero(t, admittedNow(s), a)
			s.setLimit(burstOf(a, 500, 40))
			require.Zero(t, admittedNow(s), a)
			clock.Add(2 * ms)
			require.Equal(t, 500, admittedIn(s, clock, time.Second), "%s: one second at 500/s", a)
		}
	})
}

// TestLimiter_ChangedRateKeepsTimeOfBurstInSeconds checks that a drained limiter stays drained, and
// no more than that, if its burst is in seconds or changes together with the rate.
func TestLimiter_ChangedRateKeepsTimeOfBurstInSeconds(t *testing.T) {
	onServersAndMemory(t, func(t *testing.T, made newFunc) {
		for name, c := range map[string]struct{ before, after ratelimit.Limit }{
			"seconds": {tokenBucket(1000, 0.1), tokenBucket(10, 0.1)},
			"permits and rate": {
				burstOf(ratelimit.TokenBucket, 1000, 100), burstOf(ratelimit.TokenBucket, 10, 5),
			},
			"seconds and rate": {tokenBucket(1000, 1), tokenBucket(10, 2)},
		} {
			clock := testclock.New()
			s := made(c.before, clock)
			require.Positive(t, admittedNow(s))
			for _, l := range []ratelimit.Limit{c.after, c.before, c.after} {
				s.setLimit(l)
				require.Zero(t, admittedNow(s), name)
			}
			clock.Add(100 * ms)
			require.Equal(t, 1, admittedNow(s), "%s: a permit of 10/s", name)
		}
	})
}

// TestReserve_ChangedRateKeepsPromisedWaits checks that callers who wait keep their times: new ones
// wait behind them, neither at the same moments nor a hundred times as long.
func TestReserve_ChangedRateKeepsPromisedWaits(t *testing.T) {
	onServersAndMemory(t, func(t *testing.T, made newFunc) {
		clock := testclock.New()
		at := func(rate float64) ratelimit.Limit {
			l := burstOf(ratelimit.Reserve, rate, 10)
			l.MaxWaitMillis = 1000
			return l
		}
		s := made(at(1000), clock)
		for range 10 + 500 {
			require.True(t, s.take(1, anyWait).Allowed)
		}
		s.setLimit(at(10))
		require.Equal(t, 600*ms, s.take(1, anyWait).Wait)
		s.setLimit(at(1000))
		require.Equal(t, 601*ms, s.take(1, anyWait).Wait)
	})
}
