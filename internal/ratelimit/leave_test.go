package ratelimit_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/testing/testclock"
)

// TestReserve_LeavingClientsOpenNoWindow has clients leave the queue of a limiter of 1000/s with a
// burst of 1 and a wait of 1 s, except those whose permits are good in its last 10 ms. Clients that
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
