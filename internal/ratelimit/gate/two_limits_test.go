package gate_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// TestGate_TwoLimitsOfOneKeyAreServed has callers with two limits ask for one key at once, as Envoy
// may send a limit with each descriptor. Redis decides every request, by one call at most.
func TestGate_TwoLimitsOfOneKeyAreServed(t *testing.T) {
	b := book(t, `{rules: [{name: r, permitsPerSecond: 1, onError: closed}]}`)
	rule, addr := must.Get(b.Find("r"))(t), servers.Redis(t).Addr()
	var limits [2]ratelimit.Params
	for i := range limits {
		limits[i] = paramsOf(t, ratelimit.Limit{
			Algorithm: ratelimit.TokenBucket, PermitsPerSecond: 1, Burst: int64(i+1) * 1000,
		})
	}
	for _, callers := range []int{2, 256} {
		var counts counters
		g := newGate(t, b, redislimit.New(steadyClient(t, addr), nil),
			gate.Options{Count: counts.count, Deadline: unhurried})
		const requests = 3
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				for range requests {
					request := ratelimit.Request{Key: "k", Params: limits[i%2], N: 1}
					res, err := g.Take(t.Context(), rule, request)
					if !assert.NoError(t, err) || !assert.True(t, res.Allowed) {
						return
					}
				}
			})
		}
		wg.Wait()
		require.LessOrEqual(t, counts.of(gate.EventRedisCall), int64(callers*requests))
	}
}

// TestGate_NodesWithTwoAlgorithmsKeepBothLimits has nodes whose rules differ in the algorithm, as
// while a changed rules file is deployed node by node. Each algorithm admits its limit once.
func TestGate_NodesWithTwoAlgorithmsKeepBothLimits(t *testing.T) {
	addr := servers.Redis(t).Addr()
	var gates []*gate.Gate
	for _, algorithm := range []string{
		"token_bucket, burst: 5, limit: 5", "fixed_window, limit: 5", "sliding_window, limit: 5",
		"sliding_log, limit: 5",
	} {
		b := book(t, `{rules: [{name: r, by: [goods], interval: 24h, algorithm: `+algorithm+`}]}`)
		gates = append(gates, newGate(t, b, redislimit.New(steadyClient(t, addr), nil),
			gate.Options{Deadline: unhurried}))
	}
	admitted := 0
	for range 50 {
		for _, g := range gates {
			if decide(t, g, "r", goods(1)).Allowed {
				admitted++
			}
		}
	}
	require.Equal(t, 5*len(gates), admitted)
}
