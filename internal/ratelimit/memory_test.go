package ratelimit_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/property"
	"flashsale.dev/seckill/internal/testing/testclock"
)

// local lists the window algorithms that only the in-process store supports.
var local = []ratelimit.Algorithm{ratelimit.SubWindows, ratelimit.SlidingLog}

func TestMemory_ConcurrentRequestsAreCountedOnce(t *testing.T) {
	for _, algorithm := range append(slices.Clone(local), ratelimit.SlidingWindow,
		ratelimit.FixedWindow) {
		t.Run(string(algorithm), func(t *testing.T) {
			clock := testclock.New()
			s := newLocal(t, window(algorithm, 1000, 1), clock)
			for range 3 { // each round starts after a whole interval
				var admitted atomic.Int64
				var all sync.WaitGroup
				for range 8 {
					all.Go(func() {
						for range 500 {
							if s.take(1, 0).Allowed {
								admitted.Add(1)
							}
						}
					})
				}
				all.Wait()
				require.EqualValues(t, 1000, admitted.Load(),
					"the limiter counted every request exactly one time")
				clock.Add(3 * time.Second)
			}
		})
	}
}

// TestSubWindows_NoIntervalExceedsTheLimit checks arbitrary traffic: no window of one interval
// admits more than the limit. The weighted sliding window has a weaker, documented bound.
func TestSubWindows_NoIntervalExceedsTheLimit(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		algorithm := rapid.SampledFrom(local).Draw(t, "algorithm")
		clock := testclock.New()
		s := newLocal(t, window(algorithm, 20, 1), clock)
		var good []time.Time
		for range 300 {
			clock.Add(time.Duration(rapid.IntRange(0, 60_000).Draw(t, "µs")) * us)
			if s.take(1, 0).Allowed {
				good = append(good, clock.Now())
			}
		}
		for i := 20; i < len(good); i++ {
			require.GreaterOrEqual(t, good[i].Sub(good[i-20]), time.Second)
		}
	})
}

// TestSlidingWindow_AdmitsNoSecondBurstAtABoundary checks that the limiter admits no second burst
// right after a window's end. A fixed window admits one there.
func TestSlidingWindow_AdmitsNoSecondBurstAtABoundary(t *testing.T) {
	onEveryStore(t, func(t *testing.T, made newFunc) {
		clock := testclock.New()
		s := made(window(ratelimit.SlidingWindow, 10, 1), clock)
		clock.Add(999 * ms)
		require.Equal(t, 10, admittedNow(s))
		clock.Add(ms)
		require.Zero(t, admittedNow(s), "a fixed window would admit ten more here")
		clock.Add(500 * ms)
		require.Equal(t, 5, admittedNow(s))
		d := s.take(1, 0)
		require.Equal(t, 100*ms, d.RetryAfter,
			"the old window's share shrinks by a tenth in 100 ms")
		clock.Add(d.RetryAfter - ms)
		require.Zero(t, admittedNow(s))
		clock.Add(ms)
		require.Equal(t, 1, admittedNow(s))
	})
}

// TestLimiter_RetryAfterIsExact checks random limits. The reported time is the first at which the
// limiter admits the same request.
func TestLimiter_RetryAfterIsExact(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		l := drawLimit(t)
		if rapid.Bool().Draw(t, "in process") {
			algorithm := rapid.SampledFrom(local).Draw(t, "local")
			l = window(algorithm, rapid.Int64Range(1, 20).Draw(t, "limit"), 1)
		}
		clock := testclock.New()
		s := newLocal(t, l, clock)
		for range 40 {
			clock.Add(time.Duration(rapid.IntRange(0, 200_000).Draw(t, "µs")) * us)
			n := rapid.Int64Range(1, 4).Draw(t, "n")
			d := s.take(n, 0)
			if d.Allowed || d.Never {
				require.Zero(t, d.RetryAfter)
				continue
			}
			require.Positive(t, d.RetryAfter)
			clock.Add(d.RetryAfter - us)
			require.False(t, s.peek(n, 0).Allowed, "%v: 1 µs before", l.Algorithm)
			clock.Add(us)
			require.True(t, s.take(n, 0).Allowed, "%v: at the moment reported", l.Algorithm)
		}
	})
}

// TestMemory_ChangedRateApplies checks every algorithm without a warm-up. Guava's cases cover the
// warm-up.
func TestMemory_ChangedRateApplies(t *testing.T) {
	for _, l := range append(kinds(5), bursty(1),
		window(ratelimit.SubWindows, 5, 5), window(ratelimit.SlidingLog, 5, 5)) {
		clock := testclock.New()
		s := newLocal(t, l, clock)
		admittedNow(s)
		if l.PermitsPerSecond > 0 {
			l.PermitsPerSecond = 2
		} else {
			l.Limit = 10
		}
		s.setLimit(l)
		admitted := 0
		for range 40 {
			clock.Add(500 * ms)
			admitted += admittedNow(s)
		}
		require.InDelta(t, 2*20, admitted, 7, "%s: 2/s for 20 s", l.Algorithm)
	}
}

// TestMemory_DropsFullLimiters checks that the store's size stays bounded: it removes limiters that
// have refilled.
func TestMemory_DropsFullLimiters(t *testing.T) {
	clock := testclock.New()
	m := ratelimit.NewMemory(clock.Now)
	m.SetMost(400_000) // it drops nothing below a quarter, some 400 limiters
	params := paramsOf(t, tokenBucket(1, 1))
	for i := range 10_000 {
		must.Get(m.TakeEach(t.Context(),
			ratelimit.Request{Key: string(rune(i)) + "k", Params: params, N: 1}))(t)
		clock.Add(10 * ms)
	}
	require.Less(t, m.Len(), 1000, "about a hundred limiters are below their full quota")
}
