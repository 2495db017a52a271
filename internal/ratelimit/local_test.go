package ratelimit_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/testing/testclock"
)

func TestFaultSlidingWindowUnderConcurrency(t *testing.T) {
	for _, algorithm := range []ratelimit.Algorithm{ratelimit.SubWindows, ratelimit.SlidingLog, ratelimit.SlidingWindow, ratelimit.FixedWindow} {
		t.Run(string(algorithm), func(t *testing.T) {
			clock := testclock.New()
			local, err := ratelimit.NewLocal(window(algorithm, 1000, 1), ratelimit.WithClock(clock.Now))
			require.NoError(t, err)
			for range 3 { // each time a whole reset lies behind it
				var admitted atomic.Int64
				var all sync.WaitGroup
				for range 8 {
					all.Go(func() {
						for range 500 {
							if d, err := local.TryAcquire(1); err == nil && d.Allowed {
								admitted.Add(1)
							}
						}
					})
				}
				all.Wait()
				require.EqualValues(t, 1000, admitted.Load(), "no count is lost, none is made up")
				clock.Add(3 * time.Second)
			}
		})
	}
}

// TestFaultTwiceInOneWindow: whatever comes when, no window of one interval
// holds more than the limit; the weighted window's bound is stated, not this.
func TestFaultTwiceInOneWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		algorithm := rapid.SampledFrom([]ratelimit.Algorithm{ratelimit.SubWindows, ratelimit.SlidingLog}).Draw(t, "algorithm")
		clock := testclock.New()
		local, err := ratelimit.NewLocal(window(algorithm, 20, 1), ratelimit.WithClock(clock.Now))
		require.NoError(t, err)
		var good []time.Time
		for range 300 {
			clock.Add(time.Duration(rapid.IntRange(0, 60_000).Draw(t, "µs")) * us)
			if d, err := local.TryAcquire(1); err == nil && d.Allowed {
				good = append(good, clock.Now())
			}
		}
		for i := 20; i < len(good); i++ {
			require.GreaterOrEqual(t, good[i].Sub(good[i-20]), time.Second)
		}
	})
}

func TestSlidingWindowAtTheBoundary(t *testing.T) {
	onEveryForm(t, func(t *testing.T, made func(ratelimit.Limit, *testclock.Clock) subject) {
		clock := testclock.New()
		s := made(window(ratelimit.SlidingWindow, 10, 1), clock)
		clock.Add(999 * ms)
		require.Equal(t, 10, admittedNow(s))
		clock.Add(ms)
		require.Zero(t, admittedNow(s), "a fixed window would admit ten more here")
		clock.Add(500 * ms)
		require.Equal(t, 5, admittedNow(s))
		d := s.ask(1, 0)
		require.Equal(t, 100*ms, d.RetryAfter, "when a tenth more of the old window has faded")
		clock.Add(d.RetryAfter - ms)
		require.Zero(t, admittedNow(s))
		clock.Add(ms)
		require.Equal(t, 1, admittedNow(s))
	})
}

// TestRetryAfterIsExact: of every limit, the moment told is the first at which
// the same ask is admitted.
func TestRetryAfterIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t)
		if rapid.Bool().Draw(t, "in process") {
			algorithm := rapid.SampledFrom([]ratelimit.Algorithm{ratelimit.SubWindows, ratelimit.SlidingLog}).Draw(t, "local")
			l = window(algorithm, rapid.Int64Range(1, 20).Draw(t, "limit"), 1)
		}
		clock := testclock.New()
		local, err := ratelimit.NewLocal(l, ratelimit.WithClock(clock.Now))
		require.NoError(t, err)
		for range 40 {
			clock.Add(time.Duration(rapid.IntRange(0, 200_000).Draw(t, "µs")) * us)
			n := rapid.Int64Range(1, 4).Draw(t, "n")
			d, err := local.TryAcquire(n)
			require.NoError(t, err)
			if d.Allowed || d.Never {
				require.Zero(t, d.RetryAfter)
				continue
			}
			require.Positive(t, d.RetryAfter)
			clock.Add(d.RetryAfter - us)
			early, err := local.Peek(n, 0)
			require.NoError(t, err)
			require.False(t, early.Allowed, "%v: 1 µs before", l.Algorithm)
			clock.Add(us)
			inTime, err := local.TryAcquire(n)
			require.NoError(t, err)
			require.True(t, inTime.Allowed, "%v: at the moment told", l.Algorithm)
		}
	})
}

func TestWaitSleepsAndGivesBack(t *testing.T) {
	clock := testclock.New()
	sleep := func(ctx context.Context, d time.Duration) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		clock.Add(d)
		return nil
	}
	limit := ratelimit.Limit{Algorithm: ratelimit.Reserve, PermitsPerSecond: 10, Burst: 1, MaxWaitMillis: 1000}
	local, err := ratelimit.NewLocal(limit, ratelimit.WithClock(clock.Now), ratelimit.WithSleep(sleep))
	require.NoError(t, err)
	for i, want := range []time.Duration{0, 100 * ms, 100 * ms} {
		d, err := local.Wait(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, want, d.Wait, i)
	}

	leaving, leave := context.WithCancel(t.Context())
	impatient, err := ratelimit.NewLocal(limit, ratelimit.WithClock(clock.Now), ratelimit.WithSleep(
		func(ctx context.Context, d time.Duration) error {
			if d > 0 {
				leave()
			}
			return ctx.Err()
		}))
	require.NoError(t, err)
	_, err = impatient.Wait(leaving, 1)
	require.NoError(t, err)
	_, err = impatient.Wait(leaving, 1)
	require.ErrorIs(t, err, context.Canceled)
	d, err := impatient.Reserve(1, time.Second)
	require.NoError(t, err)
	require.Equal(t, 100*ms, d.Wait, "the one who left gave the permit back")

	_, err = local.Wait(t.Context(), 100)
	require.ErrorIs(t, err, ratelimit.ErrLimited)
}

// TestSetRate: warming up is in Guava's cases.
func TestSetRate(t *testing.T) {
	for _, l := range []ratelimit.Limit{
		tokenBucket(1, 5), bursty(1), window(ratelimit.FixedWindow, 5, 5), window(ratelimit.SlidingWindow, 5, 5),
		window(ratelimit.SubWindows, 5, 5), window(ratelimit.SlidingLog, 5, 5),
	} {
		clock := testclock.New()
		local, err := ratelimit.NewLocal(l, ratelimit.WithClock(clock.Now))
		require.NoError(t, err)
		for {
			if d, err := local.TryAcquire(1); err != nil || !d.Allowed {
				break
			}
		}
		require.NoError(t, local.SetRate(2), l.Algorithm)
		admitted := 0
		for range 40 {
			clock.Add(500 * ms)
			for {
				d, err := local.TryAcquire(1)
				require.NoError(t, err)
				if !d.Allowed {
					break
				}
				admitted++
			}
		}
		require.InDelta(t, 2*20, admitted, 7, "%s: 2/s for 20 s", l.Algorithm)
	}
}

func TestMemoryForgetsWhatIsFull(t *testing.T) {
	clock := testclock.New()
	m := ratelimit.NewMemory(clock.Now)
	terms := termsOf(t, tokenBucket(1, 1))
	for i := range 10_000 {
		_, err := m.TakeEach(t.Context(), []ratelimit.Ask{{Key: string(rune(i)) + "k", Terms: terms, N: 1}})
		require.NoError(t, err)
		clock.Add(10 * ms)
	}
	require.Less(t, m.Len(), 1000, "a hundred are less than full at any time")
}
