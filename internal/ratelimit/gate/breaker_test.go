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
