package ratelimit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/testing/testclock"
)

// admissions moves the clock by each of steps, and takes as many permits as are asked for then. It
// returns when permits were admitted.
func admissions(s *limiter, clock *testclock.Clock, asks ...ask) (good []time.Time) {
	for _, a := range asks {
		clock.Add(a.after)
		for range a.n {
			if s.take(1, 0).Allowed {
				good = append(good, clock.Now())
			}
		}
	}
	return good
}

type ask struct {
	after time.Duration
	n     int
}

// mostInASecond is the most admissions within less than a second.
func mostInASecond(good []time.Time) (most int) {
	for i := range good {
		n := i
		for n < len(good) && good[n].Sub(good[i]) < time.Second {
			n++
		}
		most = max(most, n-i)
	}
	return most
}

// TestWindows_MostInASecond has a caller that knows the algorithm, with a limit of 10 a second. The
// figures are those of docs/explanation/rate-limiting.md.
func TestWindows_MostInASecond(t *testing.T) {
	onServersAndMemory(t, func(t *testing.T, made newFunc) {
		for algorithm, c := range map[ratelimit.Algorithm]struct {
			asks []ask
			most int
		}{
			// One permit begins the window, nine follow at its end, and ten begin the next one.
			ratelimit.FixedWindow: {[]ask{{0, 1}, {999 * ms, 9}, {ms, 10}}, 19},
			// Ten at a window's end weigh next to nothing at the end of the next one.
			ratelimit.SlidingWindow: {[]ask{{999 * ms, 10}, {999 * ms, 10}}, 19},
			ratelimit.SlidingLog:    {[]ask{{0, 1}, {999 * ms, 9}, {ms, 10}, {998 * ms, 10}}, 10},
		} {
			clock := testclock.New()
			good := admissions(made(window(algorithm, 10, 1), clock), clock, c.asks...)
			require.Equal(t, c.most, mostInASecond(good), algorithm)
		}
	})
}

// TestWindows_GreedyCallersGetNearlyTheLimit ask every millisecond for 100 s, with small limits. A
// sliding window admits (N-1)/N of the limit at worst. The log admits all of it.
func TestWindows_GreedyCallersGetNearlyTheLimit(t *testing.T) {
	for _, limit := range []int64{1, 2, 3, 5, 10} {
		greed := func(algorithm ratelimit.Algorithm) int {
			clock := testclock.New()
			s := newLocal(t, window(algorithm, limit, 1), clock)
			n := 0
			for range 100_000 {
				n += admittedNow(s)
				clock.Add(ms)
			}
			return n
		}
		require.EqualValues(t, 100*limit, greed(ratelimit.SlidingLog), "limit %d", limit)
		require.GreaterOrEqual(t, int64(greed(ratelimit.SlidingWindow)), 99*(limit-1),
			"limit %d", limit)
	}
}
