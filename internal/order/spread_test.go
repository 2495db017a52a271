package order

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"flashsale.dev/seckill/internal/seckill"
)

// someBucket is a bucket as Redis may have it.
func someBucket(t *rapid.T, now time.Time) seckill.View {
	v := seckill.View{Available: rapid.Int64Range(0, 200).Draw(t, "available"), Now: now}
	if rapid.Bool().Draw(t, "thirsty") {
		v.Thirst.Most = rapid.Int64Range(1, 20).Draw(t, "most")
		v.Thirst.Units = v.Thirst.Most + rapid.Int64Range(0, 100).Draw(t, "more")
		v.Thirst.At = now.Add(-time.Duration(rapid.Int64Range(0, 5000).Draw(t, "asked ms ago")) * time.Millisecond)
	}
	if rapid.Bool().Draw(t, "fed") {
		v.Thirst.Fed = now.Add(-time.Duration(rapid.Int64Range(0, 5000).Draw(t, "fed ms ago")) * time.Millisecond)
		v.Thirst.Owed = rapid.Int64Range(1, 100).Draw(t, "owed")
	}
	return v
}

// TestPlansTakeWhatIsThere: whatever the buckets are like, a plan takes from none more than it has and need not keep, and
// carries to no bucket but one that wants units or runs low.
func TestPlansTakeWhatIsThere(t *testing.T) {
	now := time.Now()
	rapid.Check(t, func(t *rapid.T) {
		buckets := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) seckill.View { return someBucket(t, now) }), 2, 16).Draw(t, "buckets")
		left, total := make([]int64, len(buckets)), int64(0)
		for i, v := range buckets {
			left[i] = v.Available
			total += v.Available
		}
		for _, p := range spread(buckets) {
			require.NotEqual(t, p.from, p.to)
			require.Positive(t, p.units)
			kept := poolOf(p.from, buckets[p.from]).keeps
			require.GreaterOrEqual(t, left[p.from]-p.units, min(left[p.from], kept), "what came for those who asked stays")
			left[p.from] -= p.units
			left[p.to] += p.units
			wants := poolOf(p.to, buckets[p.to]).wants > 0
			require.True(t, wants || buckets[p.to].Available < total/int64(len(buckets))/low, "nobody wants it there")
		}
	})
}

// TestOneWhoWaitsIsServed: where one bucket alone is asked in vain, it gets what was asked if the others have so much.
func TestOneWhoWaitsIsServed(t *testing.T) {
	now := time.Now()
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.SliceOfN(rapid.Int64Range(0, 3), 2, 64).Draw(t, "units")
		buckets, elsewhere := make([]seckill.View, len(units)), int64(0)
		for i, n := range units {
			buckets[i] = seckill.View{Available: n, Now: now}
			elsewhere += n
		}
		dry := rapid.IntRange(0, len(units)-1).Draw(t, "dry")
		elsewhere -= units[dry]
		most := units[dry] + rapid.Int64Range(1, 8).Draw(t, "wanted beyond")
		buckets[dry].Thirst = seckill.Thirst{Units: most, Most: most, At: now.Add(-time.Second)}
		got := int64(0)
		for _, p := range spread(buckets) {
			require.Equal(t, dry, p.to)
			got += p.units
		}
		require.GreaterOrEqual(t, got, min(most-units[dry], elsewhere))
	})
}

// TestTwoWhoWantMoreThanHalf: five are wanted in two places that have four each. One of them gets its five.
func TestTwoWhoWantMoreThanHalf(t *testing.T) {
	now := time.Now()
	wants := func(ago time.Duration) seckill.View {
		return seckill.View{Available: 4, Now: now, Thirst: seckill.Thirst{Units: 5, Most: 5, At: now.Add(-ago)}}
	}
	plan := spread([]seckill.View{wants(200 * time.Millisecond), wants(100 * time.Millisecond)})
	require.Equal(t, []transfer{{from: 0, to: 1, units: 1}}, plan)
}

// TestRichTransfersAreFew: a bucket that runs low while there is plenty gets half of the difference, before anybody asks in vain.
func TestRichTransfersAreFew(t *testing.T) {
	now := time.Now()
	plan := spread([]seckill.View{{Available: 1000, Now: now}, {Available: 10, Now: now}, {Available: 600, Now: now}})
	require.Equal(t, []transfer{{from: 0, to: 1, units: 495}}, plan)
	require.Empty(t, spread([]seckill.View{{Available: 20, Now: now}, {Now: now}}), "near the end nothing travels unasked")
	require.Empty(t, spread(nil))
}
