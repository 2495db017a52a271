package ratelimit_test

import (
	"testing"

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
