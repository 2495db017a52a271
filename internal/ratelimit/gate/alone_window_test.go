package gate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	"flashsale.dev/seckill/internal/testing/testclock"
)

// TestGate_NodesShareAWindowWithoutRedis has eight nodes whose Redis fails in the middle of a
// window and comes back in the same window. Redis admits the limit, and all nodes together once
// more.
func TestGate_NodesShareAWindowWithoutRedis(t *testing.T) {
	const nodes = 8
	for _, algorithm := range []ratelimit.Algorithm{
		ratelimit.FixedWindow, ratelimit.SlidingWindow, ratelimit.SlidingLog,
	} {
		for _, limit := range []int{3, 40} {
			t.Run(fmt.Sprintf("%s of %d", algorithm, limit), func(t *testing.T) {
				clock, down := testclock.New(), false
				store := moody{ratelimit.NewMemory(clock.Now), func() bool { return down }}
				b := book(t, fmt.Sprintf(`{rules: [{name: r, by: [goods], algorithm: %s, limit: %d,
					interval: 60s, onError: local}]}`, algorithm, limit))
				gates := make([]*gate.Gate, nodes)
				for i := range gates {
					gates[i] = newGate(t, b, store, gate.Options{
						Now: clock.Now, Deadline: time.Minute, Nodes: func() int { return nodes },
					})
				}
				admitted := func() (n int) {
					clock.Add(2 * time.Second) // the denial cache and the breaker have ended
					for range 2 * limit {
						for _, g := range gates {
							if decide(t, g, "r", goods(1)).Allowed {
								n++
							}
						}
					}
					return n
				}
				require.Equal(t, limit, admitted())
				down = true
				require.Equal(t, max(nodes, limit), admitted(), "each node its share")
				down = false
				require.Zero(t, admitted())
			})
		}
	}
}
