package ratelimit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/testing/testclock"
)

const ms = time.Millisecond

// TestTokenBucket_CountsDownAndNamesTheRetry checks all fields of the decisions for a full bucket,
// an empty bucket and a request above the burst.
func TestTokenBucket_CountsDownAndNamesTheRetry(t *testing.T) {
	onEveryStore(t, func(t *testing.T, made newFunc) {
		s := made(ratelimit.Limit{
			Algorithm: ratelimit.TokenBucket, PermitsPerSecond: 1, MaxBurstSeconds: 5,
		}, testclock.New())
		for left := int64(4); left >= 0; left-- {
			d := s.take(1, 0)
			require.True(t, d.Allowed)
			require.Equal(t, left, d.Remaining)
			require.Equal(t, time.Duration(5-left)*time.Second, d.ResetAfter)
		}
		sixth := s.take(1, 0)
		require.False(t, sixth.Allowed)
		require.Equal(t, time.Second, sixth.RetryAfter)
		require.False(t, sixth.Never)
		six := s.take(6, 0)
		require.True(t, six.Never)
		require.Zero(t, six.RetryAfter)
	})
}

// TestNginx_WaitsAndDeniesAsLimitReq compares the waits and denials with those of nginx's limit_req
// for the same settings.
func TestNginx_WaitsAndDeniesAsLimitReq(t *testing.T) {
	const denied = time.Duration(-1)
	for name, c := range map[string]struct {
		limit ratelimit.Limit
		waits []time.Duration
	}{
		"2/s burst 5": {
			ratelimit.Limit{PermitsPerSecond: 2, Burst: 5},
			[]time.Duration{0, 500 * ms},
		},
		"30/min burst 2 delay 1": {
			ratelimit.Limit{PermitsPerSecond: 0.5, Burst: 2, Delay: 1},
			[]time.Duration{0, 0, 2 * time.Second, denied},
		},
		"30 per 60 s says the same": {ratelimit.Limit{
			Limit: 30, IntervalSeconds: 60, Burst: 2, Delay: 1,
		}, []time.Duration{0, 0, 2 * time.Second, denied}},
		"nodelay lets burst+1 go on": {ratelimit.Limit{
			PermitsPerSecond: 2, Burst: 2, NoDelay: true,
		}, []time.Duration{0, 0, 0, denied}},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryStore(t, func(t *testing.T, made newFunc) {
				c.limit.Algorithm = ratelimit.Nginx
				s := made(c.limit, testclock.New())
				for i, want := range c.waits {
					d := s.take(1, anyWait)
					require.Equal(t, want != denied, d.Allowed, "request %d", i)
					if want != denied {
						require.Equal(t, want, d.Wait, "request %d", i)
					}
				}
			})
		})
	}
}
