package seckill

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var powers = []int{1, 2, 4, 8, 16, 32, 64}

func drawID(t *rapid.T, powers []int) (int64, int) {
	n := rapid.SampledFrom(powers).Draw(t, "buckets")
	ms := rapid.Int64Range(splitSince, idEpoch+1<<41-1).Draw(t, "ms")
	return NewGoodsID(time.UnixMilli(ms), n), n
}

// TestIDSaysBuckets: an id alone says into how many buckets its sale is split; each bucket leads back to the sale, and none
// is another's.
func TestIDSaysBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id, n := drawID(t, powers)
		require.Positive(t, id)
		require.Equal(t, n, Buckets(id))
		require.Equal(t, id, SaleOf(id))
		require.False(t, IsBucket(id))
		ids := BucketsOf(id)
		require.Len(t, slices.Compact(slices.Clone(ids)), n)
		require.Equal(t, id, ids[0])
		for _, b := range ids {
			require.Equal(t, id, SaleOf(b))
			require.Equal(t, ids, BucketsOf(b))
			require.Equal(t, b != id, IsBucket(b))
		}
	})
}

// TestOldIDsAreWhole: an id of before the layout is no split sale's, whatever its random bits are.
func TestOldIDsAreWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.Int64Range(1, (splitSince-idEpoch)<<idRandom-1).Draw(t, "id")
		require.Equal(t, 1, Buckets(id))
		require.Equal(t, []int64{id}, BucketsOf(id))
		require.Equal(t, id, BucketOf(id, 7))
	})
}

// TestBuyersSpread: a run of buyer ids fills the buckets evenly, and a buyer's bucket never changes.
func TestBuyersSpread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id, n := drawID(t, powers[:5])
		first := rapid.Int64Range(1, 1<<62).Draw(t, "first buyer")
		step := rapid.Int64Range(1, 1<<20).Draw(t, "step")
		count := make(map[int64]int)
		const each = 1000
		for i := range int64(each * n) {
			b := BucketOf(id, first+i*step)
			require.Equal(t, b, BucketOf(b, first+i*step), "any bucket's id names the sale")
			count[b]++
		}
		require.Len(t, count, n)
		for _, b := range BucketsOf(id) {
			require.InDelta(t, each, count[b], each/5)
		}
	})
}

// TestSlotsAreSpread: no master of a usual cluster carries much more than its share of a sale's buckets, and of few buckets
// on as many masters or half as many each carries the same.
func TestSlotsAreSpread(t *testing.T) {
	for range 20 {
		for _, n := range []int{4, 8} {
			require.LessOrEqual(t, load(n, n/2), 2, "%d buckets on %d masters", n, n/2)
		}
		require.Equal(t, 1, load(2, 2))
		require.Equal(t, 1, load(4, 4))
		require.LessOrEqual(t, load(8, 4), 3)
		require.LessOrEqual(t, load(16, 4), 6)
		require.LessOrEqual(t, load(64, 4), 22)
	}
}

func load(buckets, masters int) int {
	var at []int
	for _, id := range BucketsOf(NewGoodsID(time.UnixMilli(splitSince), buckets)) {
		at = append(at, Slot(id))
	}
	return busiest(at, masters)
}

// TestSlot: as CLUSTER KEYSLOT says.
func TestSlot(t *testing.T) {
	require.Equal(t, 0x31C3, int(crc16([]byte("123456789")))) // the specification's own example
	require.Equal(t, 8000, int(crc16([]byte(strconv.Itoa(42))))%slots)
}
