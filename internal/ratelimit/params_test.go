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

// TestParams_Bounds checks the highest or lowest value of each field, and the one beyond it.
func TestParams_Bounds(t *testing.T) {
	bucket := func(change func(l *ratelimit.Limit, n int64)) func(int64) ratelimit.Limit {
		return func(n int64) ratelimit.Limit {
			l := ratelimit.Limit{Algorithm: ratelimit.Reserve, PermitsPerSecond: 1}
			change(&l, n)
			return l
		}
	}
	window := func(algorithm ratelimit.Algorithm, seconds float64) func(int64) ratelimit.Limit {
		return func(n int64) ratelimit.Limit {
			return ratelimit.Limit{Algorithm: algorithm, Limit: n, IntervalSeconds: seconds}
		}
	}
	const year = 366 * 24 * 3600
	for name, c := range map[string]struct {
		good, bad int64
		of        func(n int64) ratelimit.Limit
	}{
		"burst": {1e9, 1e9 + 1, bucket(func(l *ratelimit.Limit, n int64) {
			l.PermitsPerSecond, l.Burst = 1e6, n
		})},
		"no burst": {0, -1, bucket(func(l *ratelimit.Limit, n int64) { l.Burst = n })},
		"burst of a year": {year, year + 1, bucket(func(l *ratelimit.Limit, n int64) {
			l.Burst = n
		})},
		"wait": {0, -1, bucket(func(l *ratelimit.Limit, n int64) { l.MaxWaitMillis = n })},
		"leaky burst": {1, 0, bucket(func(l *ratelimit.Limit, n int64) {
			l.Algorithm, l.Burst = ratelimit.LeakyQueue, n
		})},
		"delay": {7, 8, bucket(func(l *ratelimit.Limit, n int64) {
			l.Algorithm, l.Burst, l.Delay = ratelimit.Nginx, 7, n
		})},
		"no delay": {0, -1, bucket(func(l *ratelimit.Limit, n int64) {
			l.Algorithm, l.Burst, l.Delay = ratelimit.Nginx, 7, n
		})},
		"limit":    {1e9, 1e9 + 1, window(ratelimit.FixedWindow, 86400)},
		"no limit": {1, 0, window(ratelimit.FixedWindow, 1)},
		"sliding limit": {
			ratelimit.MaxTicks / 86_400_000, ratelimit.MaxTicks/86_400_000 + 1,
			window(ratelimit.SlidingWindow, 86400),
		},
		"rate of a window that is whole": {4, 3, func(n int64) ratelimit.Limit {
			rate := float64(n) / 2
			return ratelimit.Limit{Algorithm: ratelimit.FixedWindow, PermitsPerSecond: rate}
		}},
		"lowest rate of a window": {1, -1, func(n int64) ratelimit.Limit {
			return ratelimit.Limit{Algorithm: ratelimit.FixedWindow, PermitsPerSecond: float64(n)}
		}},
	} {
		_, err := c.of(c.good).Params()
		require.NoError(t, err, name)
		_, err = c.of(c.bad).Params()
		require.Error(t, err, name)
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
