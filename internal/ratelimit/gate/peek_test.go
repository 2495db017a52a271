package gate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/testclock"
)

// TestPeek_SilentRedisOpensTheBreaker reads a limiter of a Redis that does not answer. The clock
// stands still, so the breaker makes no probe after the third failed call.
func TestPeek_SilentRedisOpensTheBreaker(t *testing.T) {
	store := &silent{}
	b := book(t, `{rules: [{name: r, by: [goods], permitsPerSecond: 9, onError: closed}]}`)
	g := newGate(t, b, store, gate.Options{Now: testclock.New().Now, Deadline: ms})
	rule, request := requestOf(t, b)
	require.Eventually(t, func() bool { // a call may have begun before the third failure
		before := store.calls.Load()
		_, err := g.Peek(t.Context(), rule, request)
		require.Error(t, err)
		return before >= 3 && store.calls.Load() == before
	}, 10*time.Second, ms)
}

// TestPeek_AllowedMeansThatOnePermitWouldBe compares a read with the request after it, from a new
// limiter on. A smooth_bursty admits a request when it has no permits: the next one pays for it.
func TestPeek_AllowedMeansThatOnePermitWouldBe(t *testing.T) {
	for _, algorithm := range []string{
		"smooth_bursty, maxWaitMillis: 0", "smooth_bursty, maxBurstSeconds: 0, maxWaitMillis: 0",
		"smooth_bursty, maxBurstSeconds: 3, maxWaitMillis: 0", "token_bucket", "nginx, burst: 2",
		"leaky_meter, burst: 2", "fixed_window", "sliding_window", "sliding_log",
	} {
		for _, scope := range []string{"node", "global"} {
			t.Run(algorithm+", "+scope, func(t *testing.T) {
				clock := testclock.New()
				b := book(t,
					`{rules: [{name: r, permitsPerSecond: 3, scope: `+scope+`, algorithm: `+
						algorithm+`}]}`)
				g := newGate(t, b, ratelimit.NewMemory(clock.Now),
					gate.Options{Now: clock.Now, Deadline: unhurried})
				rule, request := requestOf(t, b)
				request.MaxWait = 0
				admitted := 0
				for range 60 {
					read := must.Get(g.Peek(t.Context(), rule, request))(t)
					took := must.Get(g.Take(t.Context(), rule, request))(t)
					require.Equal(t, took.Allowed, read.Allowed, "%+v", took)
					if took.Allowed {
						admitted++
					}
					clock.Add(70 * ms)
				}
				require.Greater(t, admitted, 5)
			})
		}
	}
}

// TestPeek_WithoutRedisReadsTheNodesShare reads a limiter while one of four nodes decides by its
// share of the burst. Redis has answered a moment before, so the node may owe its part alone.
func TestPeek_WithoutRedisReadsTheNodesShare(t *testing.T) {
	for _, algorithm := range []string{
		"token_bucket, permitsPerSecond: 0.5, burst: 8",
		"fixed_window, limit: 8, interval: 1h",
	} {
		t.Run(algorithm, func(t *testing.T) {
			down, clock := false, testclock.New()
			store := moody{ratelimit.NewMemory(clock.Now), func() bool { return down }}
			b := book(t, `{rules: [{name: r, by: [goods], algorithm: `+algorithm+`}]}`)
			g := newGate(t, b, store, gate.Options{
				Now: clock.Now, Deadline: time.Minute, Nodes: func() int { return 4 },
			})
			rule, request := requestOf(t, b)
			remaining := func() int64 {
				d := must.Get(g.Peek(t.Context(), rule, request))(t)
				require.Equal(t, d.Remaining > 0, d.Allowed)
				return d.Remaining
			}
			require.True(t, decide(t, g, "r", goods(1)).Allowed)
			require.EqualValues(t, 7, remaining())
			down = true
			for left := int64(2); left > 0; left-- {
				require.Equal(t, left, remaining())
				require.True(t, decide(t, g, "r", goods(1)).Allowed)
			}
			require.Zero(t, remaining())
			require.False(t, decide(t, g, "r", goods(1)).Allowed)
		})
	}
}
