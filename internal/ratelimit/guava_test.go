package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/testing/testclock"
)

// The cases of com.google.common.util.concurrent.RateLimiterTest, by its names.
// R is a wait the limiter causes, U one the user chooses, as there. Infinite
// rates are no limits here: Validate refuses them.

func warming(rate, warmup, cold float64) ratelimit.Limit {
	return ratelimit.Limit{
		Algorithm: ratelimit.SmoothWarmingUp, PermitsPerSecond: rate, WarmupSeconds: warmup, ColdFactor: cold, MaxWaitMillis: 86_400_000,
	}
}

// stopwatch plays a case: acquiring sleeps, and each sleep is an event.
type stopwatch struct {
	t      *testing.T
	s      *limiter
	l      ratelimit.Limit
	clock  *testclock.Clock
	events []string
}

func (w *stopwatch) acquire(permits ...int64) {
	for _, n := range permits {
		w.events = append(w.events, "R"+hundredths(acquire(w.t, w.s, w.clock, n)))
	}
}

func (w *stopwatch) times(n int) {
	for range n {
		w.acquire(1)
	}
}

func (w *stopwatch) sleep(d time.Duration) {
	w.clock.Add(d)
	w.events = append(w.events, "U"+hundredths(d))
}

// hundredths of a second, rounded half up as Java's format does.
func hundredths(d time.Duration) string {
	h := (d + 5*ms) / (10 * ms)
	return fmt.Sprintf("%d.%02d", h/100, h%100)
}

func (w *stopwatch) setRate(rate float64) {
	w.l.PermitsPerSecond = rate
	w.s.setLimit(w.l)
}

type guavaCase struct {
	limit  ratelimit.Limit
	play   func(w *stopwatch)
	events string
}

func (c guavaCase) run(t *testing.T, made newFunc) {
	clock := testclock.New()
	w := &stopwatch{t: t, s: made(c.limit, clock), l: c.limit, clock: clock}
	c.play(w)
	require.Equal(t, strings.Fields(c.events), w.events)
}

func TestGuava_Bursty(t *testing.T) {
	cases := map[string]guavaCase{
		"testSimpleWithWait": {bursty(5), func(w *stopwatch) { w.times(1); w.sleep(200 * ms); w.times(2) }, "R0.00 U0.20 R0.00 R0.20"},
		"testSimpleAcquireEarliestAvailableIsInPast": {
			bursty(5), func(w *stopwatch) { w.times(1); w.sleep(400 * ms); w.times(3) }, "R0.00 U0.40 R0.00 R0.00 R0.20",
		},
		// A limiter begins with its first ask here, not when it is configured: so
		// the two seconds of idling come after one ask, and 200 ms that repay it.
		"testOneSecondBurst": {
			bursty(5),
			func(w *stopwatch) { w.times(1); w.sleep(2200 * ms); w.acquire(1, 1, 3, 1, 1) },
			"R0.00 U2.20 R0.00 R0.00 R0.00 R0.00 R0.20",
		},
		"testBurstyAndUpdate": {
			bursty(1),
			func(w *stopwatch) { w.acquire(1, 1); w.setRate(2); w.acquire(1, 2, 4, 1) },
			"R0.00 R1.00 R1.00 R0.50 R1.00 R2.00",
		},
	}
	onEveryStore(t, func(t *testing.T, made newFunc) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) { c.run(t, made) })
		}
	})
}

func TestGuava_TryAcquire(t *testing.T) {
	allowed := func(t *testing.T, want bool, d ratelimit.Decision) { t.Helper(); require.Equal(t, want, d.Allowed) }
	onEveryStore(t, func(t *testing.T, made newFunc) {
		t.Run("testTryAcquire_noWaitAllowed", func(t *testing.T) {
			clock := testclock.New()
			s := made(bursty(5), clock)
			allowed(t, true, s.take(1, 0))
			allowed(t, false, s.take(1, 0))
			allowed(t, false, s.take(1, 0))
			clock.Add(100 * ms)
			allowed(t, false, s.take(1, 0))
		})
		t.Run("testTryAcquire_someWaitAllowed", func(t *testing.T) {
			clock := testclock.New()
			s := made(bursty(5), clock)
			allowed(t, true, s.take(1, 0))
			// Guava's sleeps for the wait.
			second := s.take(1, 200*ms)
			allowed(t, true, second)
			clock.Add(second.Wait)
			allowed(t, false, s.take(1, 100*ms))
			clock.Add(100 * ms)
			allowed(t, true, s.take(1, 100*ms))
		})
		t.Run("testTryAcquire_overflow", func(t *testing.T) {
			clock := testclock.New()
			s := made(bursty(5), clock)
			allowed(t, true, s.take(1, 0))
			clock.Add(100 * ms)
			allowed(t, true, s.take(1, anyWait))
		})
		t.Run("testTryAcquire_negative", func(t *testing.T) {
			clock := testclock.New()
			s := made(bursty(5), clock)
			allowed(t, true, s.take(5, 0))
			clock.Add(900 * ms)
			allowed(t, false, s.take(1, -time.Hour))
			clock.Add(100 * ms)
			allowed(t, true, s.take(1, -1))
		})
		t.Run("testDoubleMinValueCanAcquireExactlyOnce", func(t *testing.T) {
			clock := testclock.New()
			s := made(bursty(0.000001), clock)
			allowed(t, true, s.take(1, 0))
			allowed(t, false, s.take(1, 0))
			clock.Add(100 * time.Hour)
			allowed(t, false, s.take(1, 0))
		})
	})
}

func TestGuava_ParameterValidation(t *testing.T) {
	for _, n := range []int64{0, -1} {
		ask := newLocal(t, bursty(999), testclock.New()).request(n, 0)
		_, err := ratelimit.NewMemory(nil).TakeEach(t.Context(), []ratelimit.Request{ask})
		require.ErrorIs(t, err, ratelimit.ErrPermits)
	}
	require.NoError(t, bursty(10).Validate())
	require.Error(t, bursty(0).Validate())
	require.Error(t, bursty(-10).Validate())
	require.NoError(t, warming(1, 0.000001, 3).Validate())
	require.NoError(t, warming(1, 0, 3).Validate())
	require.Error(t, warming(0, 1, 3).Validate())
	require.Error(t, warming(1, -1, 3).Validate())
}

func TestGuava_WarmingUp(t *testing.T) {
	for name, c := range map[string]guavaCase{
		"testWarmUp": {warming(2, 4, 3), func(w *stopwatch) {
			w.times(8)
			w.sleep(500 * ms)
			w.sleep(4000 * ms)
			w.times(8)
			w.sleep(500 * ms)
			w.sleep(2000 * ms)
			w.times(8)
		}, `R0.00 R1.38 R1.13 R0.88 R0.63 R0.50 R0.50 R0.50 U0.50 U4.00
			R0.00 R1.38 R1.13 R0.88 R0.63 R0.50 R0.50 R0.50 U0.50 U2.00
			R0.00 R0.50 R0.50 R0.50 R0.50 R0.50 R0.50 R0.50`},
		"testWarmUpWithColdFactor": {warming(5, 4, 10), func(w *stopwatch) {
			w.times(8)
			w.sleep(200 * ms)
			w.sleep(4000 * ms)
			w.times(8)
			w.sleep(200 * ms)
			w.sleep(1000 * ms)
			w.times(8)
		}, `R0.00 R1.75 R1.26 R0.76 R0.30 R0.20 R0.20 R0.20 U0.20 U4.00
			R0.00 R1.75 R1.26 R0.76 R0.30 R0.20 R0.20 R0.20 U0.20 U1.00
			R0.00 R0.20 R0.20 R0.20 R0.20 R0.20 R0.20 R0.20`},
		"testWarmUpWithColdFactor1": {warming(5, 4, 1), func(w *stopwatch) {
			w.times(8)
			w.sleep(340 * ms)
			w.times(8)
		}, `R0.00 R0.20 R0.20 R0.20 R0.20 R0.20 R0.20 R0.20 U0.34
			R0.00 R0.20 R0.20 R0.20 R0.20 R0.20 R0.20 R0.20`},
		"testWarmUpAndUpdate": {warming(2, 4, 3), func(w *stopwatch) {
			w.times(8)
			w.sleep(4500 * ms)
			w.times(3)
			w.setRate(4)
			w.times(5)
			w.sleep(4250 * ms)
			w.times(11)
		}, `R0.00 R1.38 R1.13 R0.88 R0.63 R0.50 R0.50 R0.50 U4.50 R0.00 R1.38 R1.13 R0.88
			R0.34 R0.28 R0.25 R0.25 U4.25 R0.00 R0.72 R0.66 R0.59 R0.53 R0.47 R0.41 R0.34 R0.28 R0.25 R0.25`},
		"testWarmUpAndUpdateWithColdFactor": {warming(5, 4, 10), func(w *stopwatch) {
			w.times(8)
			w.sleep(4200 * ms)
			w.times(3)
			w.setRate(10)
			w.times(5)
			w.sleep(4100 * ms)
			w.times(11)
		}, `R0.00 R1.75 R1.26 R0.76 R0.30 R0.20 R0.20 R0.20 U4.20 R0.00 R1.75 R1.26 R0.76
			R0.20 R0.10 R0.10 R0.10 U4.10 R0.00 R0.94 R0.81 R0.69 R0.57 R0.44 R0.32 R0.20 R0.10 R0.10 R0.10`},
	} {
		t.Run(name, func(t *testing.T) {
			c.run(t, func(l ratelimit.Limit, clock *testclock.Clock) *limiter { return newLocal(t, l, clock) })
		})
	}
}

// totalTime acquires so many permits in random lots, and one more to repay.
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

func TestGuava_WarmupTimeHoldsWithWeights(t *testing.T) {
	const permits = 10
	for range 100 {
		for _, cold := range []float64{2, 3, 10} {
			for _, rate := range []float64{4, 2, 1, 0.5, 0.1} {
				warmup := (1 + cold) * permits / (2 * rate)
				clock := testclock.New()
				took := totalTime(t, newLocal(t, warming(rate, warmup, cold), clock), clock, permits)
				require.InDelta(t, warmup, took.Seconds(), 0.001)
			}
		}
	}
}
