package ratelimit_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/testing/testclock"
)

// TestReserve_LeavingClientsOpenNoWindow has clients leave the queue of a limiter of 1000/s with a
// burst of 1 and a wait of 1 s. Those whose permits are good in its last 10 ms stay. Clients that
// take their places are bounded as if nobody had left: 11 permits in these 10 ms.
func TestReserve_LeavingClientsOpenNoWindow(t *testing.T) {
	for name, order := range map[string]func([]ratelimit.Decision){
		"first first": func([]ratelimit.Decision) {},
		"last first":  slices.Reverse[[]ratelimit.Decision],
	} {
		t.Run(name, func(t *testing.T) {
			onServersAndMemory(t, func(t *testing.T, made newFunc) {
				s := made(ratelimit.Limit{
					Algorithm: ratelimit.Reserve, PermitsPerSecond: 1000, Burst: 1,
					MaxWaitMillis: 1000,
				}, testclock.New())
				stayed := 0
				for range 10 {
					var left []ratelimit.Decision
					for d := s.take(1, anyWait); d.Allowed; d = s.take(1, anyWait) {
						if d.Wait >= 990*ms {
							stayed++
						} else {
							left = append(left, d)
						}
					}
					order(left)
					for _, d := range left {
						s.refund(1, d)
					}
				}
				require.Equal(t, 11, stayed, "permits good in 10 ms at 1000/s with a burst of 1")
			})
		})
	}
}

// TestLimiter_LastPermitsComeBack checks that refunds in the reverse order of the requests return
// everything, so that a client that leaves alone costs nobody a permit.
func TestLimiter_LastPermitsComeBack(t *testing.T) {
	onServersAndMemory(t, func(t *testing.T, made newFunc) {
		for _, a := range []ratelimit.Algorithm{ratelimit.Reserve, ratelimit.SmoothBursty} {
			s := made(ratelimit.Limit{
				Algorithm: a, PermitsPerSecond: 700, Burst: 1, MaxWaitMillis: 50,
			}, testclock.New())
			var taken []ratelimit.Decision
			for d := s.take(1, anyWait); d.Allowed; d = s.take(1, anyWait) {
				taken = append(taken, d)
			}
			slices.Reverse(taken)
			for _, d := range taken {
				s.refund(1, d)
			}
			for _, before := range slices.Backward(taken) {
				require.Equal(t, before, s.take(1, anyWait), a)
			}
			require.False(t, s.take(1, anyWait).Allowed, a)
		}
	})
}

// TestReserve_DeniedCallersDrainNoSharedRule has callers that another rule denies take permits of a
// rule that all share and return them. Nobody waits. Others take permits between, and lose none.
func TestReserve_DeniedCallersDrainNoSharedRule(t *testing.T) {
	onServersAndMemory(t, func(t *testing.T, made newFunc) {
		for _, rate := range []float64{700, 1000} {
			s := made(ratelimit.Limit{
				Algorithm: ratelimit.Reserve, PermitsPerSecond: rate, Burst: 100,
				MaxWaitMillis: 100,
			}, testclock.New())
			for range 5 {
				require.True(t, s.take(1, 0).Allowed) // a permit that a leaving client may return
			}
			for range 95 {
				denied := s.take(1, 0)
				require.True(t, denied.Allowed)
				require.True(t, s.take(1, anyWait).Allowed)
				s.refund(1, denied)
			}
			require.Zero(t, s.take(1, 0).Remaining)
		}
	})
}

// TestLimiter_DrainedPermitsDoNotComeBack has clients keep a burst of permits until these have
// drained, and return them after others took a burst. The others get no second one.
func TestLimiter_DrainedPermitsDoNotComeBack(t *testing.T) {
	onServersAndMemory(t, func(t *testing.T, made newFunc) {
		clock := testclock.New()
		s := made(burstOf(ratelimit.TokenBucket, 700, 10), clock)
		var kept []ratelimit.Decision
		for range 10 {
			kept = append(kept, s.take(1, 0))
		}
		clock.Add(15 * ms)
		require.Equal(t, 10, admittedNow(s))
		for _, d := range kept {
			require.True(t, d.Allowed)
			s.refund(1, d)
		}
		require.Zero(t, admittedNow(s))
	})
}

// TestLimiter_ChangedLimitTakesNothingBack returns a permit that was taken under another limit. It
// stays taken: when it would have drained at the old rate says nothing about the new one.
func TestLimiter_ChangedLimitTakesNothingBack(t *testing.T) {
	onServersAndMemory(t, func(t *testing.T, made newFunc) {
		s := made(burstOf(ratelimit.TokenBucket, 10, 5), testclock.New())
		first := s.take(1, 0)
		s.setLimit(burstOf(ratelimit.TokenBucket, 1000, 5))
		require.Equal(t, int64(3), s.take(1, 0).Remaining)
		s.setLimit(burstOf(ratelimit.TokenBucket, 10, 5))
		s.refund(1, first)
		s.setLimit(burstOf(ratelimit.TokenBucket, 1000, 5))
		require.Equal(t, int64(2), s.take(1, 0).Remaining)
	})
}
