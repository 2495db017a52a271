package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/internal/testing/testclock"
)

// These are the cases of com.google.common.util.concurrent.RateLimiterTest, under its names. Params
// rejects infinite rates, so those cases are absent.

func bursty(rate float64) ratelimit.Limit {
	return ratelimit.Limit{
		Algorithm: ratelimit.SmoothBursty, PermitsPerSecond: rate,
		MaxBurstSeconds: 1, MaxWaitMillis: 3_600_000,
	}
}

func warming(rate, warmup, cold float64) ratelimit.Limit {
	return ratelimit.Limit{
		Algorithm: ratelimit.SmoothWarmingUp, PermitsPerSecond: rate,
		WarmupSeconds: warmup, ColdFactor: cold, MaxWaitMillis: 86_400_000,
	}
}

// acquire works as Guava's acquire: it books permits and advances the clock by the wait.
func acquire(t *testing.T, s *limiter, clock *testclock.Clock, n int64) time.Duration {
	d := s.take(n, anyWait)
	require.True(t, d.Allowed, "%+v", d)
	clock.Add(d.Wait)
	return d.Wait
}

// guavaCases are limits with the steps for a new limiter of each. As in Guava's test, R is a wait
// in seconds that the limiter causes. U is a wait that the user chooses:
//
//	R0.50   acquires a permit and waits that long; R0.50:2 acquires two
//	U0.50   sleeps that long
//	yes@1s  tries to acquire a permit, with that longest wait, and gets it; no@1s does not
//	rate:2  changes the rate
type guavaCases map[string]struct {
	limit  ratelimit.Limit
	events string
}

func (c guavaCases) run(t *testing.T, made newFunc) {
	for name, c := range c {
		t.Run(name, func(t *testing.T) {
			clock := testclock.New()
			s := made(c.limit, clock)
			for i, event := range strings.Fields(c.events) {
				event, weight, _ := strings.Cut(event, ":")
				n, _ := strconv.ParseInt(weight, 10, 64) // 1 if absent
				playGuava(t, s, clock, fmt.Sprintf("%d. %s", i, event), event, max(1, n))
				if event == "rate" {
					c.limit.PermitsPerSecond = float64(n)
					s.setLimit(c.limit)
				}
			}
		})
	}
}

func playGuava(t *testing.T, s *limiter, clock *testclock.Clock, label, event string, n int64) {
	answer, wait, tries := strings.Cut(event, "@")
	switch {
	case tries:
		most, err := time.ParseDuration(wait)
		if wait == "any" {
			most, err = anyWait, nil
		}
		require.NoError(t, err)
		d := s.take(n, most)
		require.Equal(t, answer == "yes", d.Allowed, label)
		clock.Add(d.Wait)
	case event[0] == 'R':
		// The result is in hundredths of a second, rounded half up as Java's format does.
		h := (acquire(t, s, clock, n) + 5*ms) / (10 * ms)
		require.Equal(t, event, fmt.Sprintf("R%d.%02d", h/100, h%100), label)
	case event[0] == 'U':
		clock.Add(must.Get(time.ParseDuration(event[1:] + "s"))(t))
	}
}

func TestGuava_BurstyWaitsAsInGuavasTests(t *testing.T) {
	onEveryStore(t, guavaCases{
		"testSimple":         {bursty(5), "R0.00 R0.20 R0.20"},
		"testSimpleWeights":  {bursty(1), "R0.00 R1.00 R1.00:2 R2.00:4 R4.00:8 R8.00"},
		"testSimpleWithWait": {bursty(5), "R0.00 U0.20 R0.00 R0.20"},
		"testSimpleAcquireEarliestAvailableIsInPast": {bursty(5), "R0.00 U0.40 R0.00 R0.00 R0.20"},
		// A limiter starts with its first request here, but with its configuration in Guava. The
		// two idle seconds therefore follow one request and the 200 ms that repay it.
		"testOneSecondBurst":  {bursty(5), "R0.00 U2.20 R0.00 R0.00 R0.00:3 R0.00 R0.20"},
		"testBurstyAndUpdate": {bursty(1), "R0.00 R1.00 rate:2 R1.00 R0.50:2 R1.00:4 R2.00"},

		"testTryAcquire_noWaitAllowed":   {bursty(5), "yes@0s no@0s no@0s U0.10 no@0s"},
		"testTryAcquire_someWaitAllowed": {bursty(5), "yes@0s yes@200ms no@100ms U0.10 yes@100ms"},
		"testTryAcquire_overflow":        {bursty(5), "yes@0s U0.10 yes@any"},
		"testTryAcquire_negative":        {bursty(5), "yes@0s:5 U0.90 no@-1h U0.10 yes@-1ns"},

		"testDoubleMinValueCanAcquireExactlyOnce": {bursty(1e-6), "yes@0s no@0s U360000 no@0s"},
	}.run)
}

func TestGuava_RefusesParametersThatGuavaRefuses(t *testing.T) {
	require.NoError(t, bursty(10).Validate())
	require.Error(t, bursty(0).Validate())
	require.Error(t, bursty(-10).Validate())
	require.NoError(t, warming(1, 0.000001, 3).Validate())
	require.NoError(t, warming(1, 0, 3).Validate())
	require.Error(t, warming(0, 1, 3).Validate())
	require.Error(t, warming(1, -1, 3).Validate())
}

// TestGuava_RateBelowOneInAYearIsRefused checks rates that are slower than the largest wait.
func TestGuava_RateBelowOneInAYearIsRefused(t *testing.T) {
	for _, limit := range []ratelimit.Limit{bursty(3e-8), warming(3e-8, 10, 3)} {
		limit.MaxBurstSeconds = 0
		_, err := limit.Params()
		require.ErrorContains(t, err, "permitsPerSecond: is less than one in 366 days")
	}
}

// TestGuava_WarmingUpRefusesAYear asks a slow limiter for permits that later callers would pay for
// during more than a year.
func TestGuava_WarmingUpRefusesAYear(t *testing.T) {
	for _, rate := range []float64{1, 0.1, 0.00001} {
		m := ratelimit.NewMemory(testclock.New().Now)
		take := func(n int64) ratelimit.Decision {
			request := ratelimit.Request{Key: "k", N: n}
			request.Params = must.Get(warming(rate, 10, 3).Params())(t)
			return must.Get(m.TakeEach(t.Context(), request))(t)[0]
		}
		require.True(t, take(1_000_000_000).Never)
		require.True(t, take(300).Allowed)
		denied := take(1)
		require.False(t, denied.Allowed)
		require.Positive(t, denied.RetryAfter)
	}
}

func TestGuava_WarmingUpWaitsAsInGuavasTests(t *testing.T) {
	guavaCases{
		"testWarmUp": {warming(2, 4, 3), `
			R0.00 R1.38 R1.13 R0.88 R0.63 R0.50 R0.50 R0.50 U0.50 U4.00
			R0.00 R1.38 R1.13 R0.88 R0.63 R0.50 R0.50 R0.50 U0.50 U2.00
			R0.00 R0.50 R0.50 R0.50 R0.50 R0.50 R0.50 R0.50`},
		"testWarmUpWithColdFactor": {warming(5, 4, 10), `
			R0.00 R1.75 R1.26 R0.76 R0.30 R0.20 R0.20 R0.20 U0.20 U4.00
			R0.00 R1.75 R1.26 R0.76 R0.30 R0.20 R0.20 R0.20 U0.20 U1.00
			R0.00 R0.20 R0.20 R0.20 R0.20 R0.20 R0.20 R0.20`},
		"testWarmUpWithColdFactor1": {warming(5, 4, 1), `
			R0.00 R0.20 R0.20 R0.20 R0.20 R0.20 R0.20 R0.20 U0.34
			R0.00 R0.20 R0.20 R0.20 R0.20 R0.20 R0.20 R0.20`},
		"testWarmUpAndUpdate": {warming(2, 4, 3), `
			R0.00 R1.38 R1.13 R0.88 R0.63 R0.50 R0.50 R0.50 U4.50 R0.00 R1.38 R1.13 rate:4
			R0.88 R0.34 R0.28 R0.25 R0.25 U4.25
			R0.00 R0.72 R0.66 R0.59 R0.53 R0.47 R0.41 R0.34 R0.28 R0.25 R0.25`},
		"testWarmUpAndUpdateWithColdFactor": {warming(5, 4, 10), `
			R0.00 R1.75 R1.26 R0.76 R0.30 R0.20 R0.20 R0.20 U4.20 R0.00 R1.75 R1.26 rate:10
			R0.76 R0.20 R0.10 R0.10 R0.10 U4.10
			R0.00 R0.94 R0.81 R0.69 R0.57 R0.44 R0.32 R0.20 R0.10 R0.10 R0.10`},
	}.run(t, func(l ratelimit.Limit, c *testclock.Clock) *limiter { return newLocal(t, l, c) })
}

// totalTime acquires permits in random amounts, and one more to pay for the last.
func totalTime(t *testing.T, s *limiter, clock *testclock.Clock, permits int64) time.Duration {
	began := clock.Now()
	for permits > 0 {
		n := max(1, rand.Int64N(permits))
		permits -= n
		acquire(t, s, clock, n)
	}
	acquire(t, s, clock, 1)
	return clock.Now().Sub(began)
}

func TestGuava_BurstIsAtMostOneSecond(t *testing.T) {
	onServersAndMemory(t, func(t *testing.T, made newFunc) {
		clock := testclock.New()
		s := made(bursty(1), clock)
		for _, rate := range []int64{1000, 1, 10, 1_000_000, 10, 1} {
			clock.Add(time.Duration(rate) * time.Second)
			s.setLimit(bursty(float64(rate)))
			require.LessOrEqual(t, totalTime(t, s, clock, rate), time.Second)
			require.GreaterOrEqual(t, totalTime(t, s, clock, rate), time.Second)
		}
	})
}

// TestGuava_IdleLimiterKeepsItsStoredPermits checks that a full limiter is not taken for a new one,
// which has no stored permits. Redis keeps its key for a day, and a memory that drops others keeps
// it.
func TestGuava_IdleLimiterKeepsItsStoredPermits(t *testing.T) {
	client := newClient(t, servers.Redis(t).Addr())
	s := newLimiter(t, redislimit.New(client, nil), "k", bursty(5))
	s.take(1, 0)
	require.Greater(t, client.PTTL(t.Context(), "k").Val(), 23*time.Hour)

	clock := testclock.New()
	memory := ratelimit.NewMemory(clock.Now)
	memory.SetMost(8 << 20) // beyond a quarter of it, the memory drops full limiters
	s = newLimiter(t, memory, "k", bursty(5))
	s.take(1, 0)
	clock.Add(time.Hour)
	other := newLimiter(t, memory, "", tokenBucket(1000, 1))
	for n := range 100_000 {
		other.key = address(n)
		other.take(1, 0)
		clock.Add(ms)
	}
	require.Less(t, memory.Len(), 15_000, "the memory drops limiters")
	require.Equal(t, int64(5), s.peek(1, 0).Remaining)
}

func TestGuava_WarmupTimeHoldsWithWeights(t *testing.T) {
	const permits = 10
	for range 100 {
		for _, cold := range []float64{2, 3, 10} {
			for _, rate := range []float64{4, 2, 1, 0.5, 0.1} {
				warmup := (1 + cold) * permits / (2 * rate)
				clock := testclock.New()
				took := totalTime(t, newLocal(t, warming(rate, warmup, cold), clock), clock,
					permits)
				require.InDelta(t, warmup, took.Seconds(), 0.001)
			}
		}
	}
}
