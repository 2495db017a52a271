package gate_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	"flashsale.dev/seckill/internal/testing/testclock"
)

// silent is a store that never answers, as a paused Redis.
type silent struct {
	gate.Store
	calls atomic.Int64
}

// TakeEach ends with its deadline.
func (s *silent) TakeEach(
	ctx context.Context, _ ...ratelimit.Request,
) ([]ratelimit.Decision, error) {
	s.calls.Add(1)
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestBreaker_OpensAndProbes moves the clock between single callers of a store that fails at once.
func TestBreaker_OpensAndProbes(t *testing.T) {
	down, clock, meter := true, testclock.New(), &counters{}
	store := moody{ratelimit.NewMemory(clock.Now), func() bool { return down }}
	g := newGate(t, book(t, `{rules: [{name: r, by: [goods], algorithm: smooth_bursty,
		permitsPerSecond: 1000, onError: open}]}`), store,
		gate.Options{Now: clock.Now, Deadline: unhurried, Count: meter.count})
	calls := func(callers int) int64 {
		before := meter.of(gate.EventRedisCall)
		for range callers {
			require.True(t, decide(t, g, "r", goods(1)).Allowed)
		}
		return meter.of(gate.EventRedisCall) - before
	}
	for _, step := range []struct {
		name           string
		down           bool
		after          time.Duration
		callers, calls int64
	}{
		{"two failures", true, 0, 2, 2},
		{"a success ends the row", false, 0, 1, 1},
		{"three failures in a row", true, 0, 5, 3},
		{"open", true, 99 * ms, 5, 0},
		{"one probe", true, ms, 5, 1},
		{"open again", true, 99 * ms, 5, 0},
		{"a probe that succeeds", false, ms, 5, 5},
		{"closed", true, 0, 5, 3},
	} {
		down = step.down
		clock.Add(step.after)
		require.Equal(t, step.calls, calls(int(step.callers)), step.name)
	}
}

// TestBreaker_FailedCallCountsOnce lets 16 callers wait for each call. The breaker opens after
// three calls, and not after three callers. The clock stands still, so the breaker makes no probe.
func TestBreaker_FailedCallCountsOnce(t *testing.T) {
	for rule, yaml := range map[string]string{
		"shared": `{name: r, by: [goods], algorithm: token_bucket, permitsPerSecond: 9, burst: 9}`,
		"direct": `{name: r, by: [goods], algorithm: smooth_bursty, permitsPerSecond: 9}`,
	} {
		t.Run(rule, func(t *testing.T) {
			store := &silent{}
			g := newGate(t, book(t, "{rules: ["+yaml+"]}"), store, gate.Options{
				Now: testclock.New().Now, Deadline: 50 * ms,
			})
			rush := func(callers int) {
				var all sync.WaitGroup
				for range callers {
					all.Go(func() { decide(t, g, "r", goods(1)) })
				}
				all.Wait()
			}
			require.Eventually(t, func() bool { // a call may have begun before the third failure
				before := store.calls.Load()
				rush(16)
				return before >= 3 && store.calls.Load() == before
			}, time.Minute, ms)
		})
	}
}
