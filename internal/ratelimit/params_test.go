package ratelimit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestParams_OfEqualLimitsAreEqual compiles a limit twice, as each request with a limit of its own
// does. The gate keeps leases, denials and debts while the params of a key stay equal.
func TestParams_OfEqualLimitsAreEqual(t *testing.T) {
	for _, l := range []ratelimit.Limit{
		{Algorithm: ratelimit.TokenBucket, PermitsPerSecond: 10, Burst: 3},
		{Algorithm: ratelimit.FixedWindow, PermitsPerSecond: 10},
		{Algorithm: ratelimit.SlidingLog, PermitsPerSecond: 10},
	} {
		again := l
		require.Equal(t, must.Get(l.Params())(t), must.Get(again.Params())(t))
		require.True(t, must.Get(l.Params())(t) == must.Get(again.Params())(t), l.Algorithm)
		again.PermitsPerSecond = 11
		require.False(t, must.Get(l.Params())(t) == must.Get(again.Params())(t), l.Algorithm)
	}
}

// TestParams_ShareOfManyNodes checks one node's part of a bucket and of a window. Each node has
// room for a permit.
func TestParams_ShareOfManyNodes(t *testing.T) {
	for nodes, want := range map[int64][]int64{
		0: {10, 10, 1}, 1: {10, 10, 1}, 4: {2, 2, 4}, 20: {1, 1, 20}, 5000: {1, 1, 1000},
	} {
		bucket := must.Get(ratelimit.Limit{
			Algorithm: ratelimit.TokenBucket, PermitsPerSecond: 1, Burst: 10,
		}.Params())(t).Share(nodes)
		window := must.Get(ratelimit.Limit{
			Algorithm: ratelimit.FixedWindow, Limit: 10, IntervalSeconds: 1,
		}.Params())(t).Share(nodes)
		seconds := int64(bucket.TimeFor(1) / time.Second)
		require.Equal(t, want, []int64{bucket.LargestRequest(0), window.LargestRequest(0), seconds},
			"%d nodes", nodes)
	}
}
