package order_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
)

// TestShard_NeverChanges checks that the shards of some goods stay the same. Two releases that run
// side by side must agree on them.
func TestShard_NeverChanges(t *testing.T) {
	for goodsID, want := range map[int64][3]int{
		1: {0, 1, 1}, 42: {0, 1, 5}, 1_700_000_000_000_001: {0, 2, 2},
	} {
		got := [3]int{order.Shard(goodsID, 1), order.Shard(goodsID, 4), order.Shard(goodsID, 16)}
		require.Equal(t, want, got, "goods %d", goodsID)
	}
}

func TestShard_SpreadsRunsOfIDs(t *testing.T) {
	const shards, each = 8, 1000
	counts := make([]int, shards)
	for i := range int64(shards * each) {
		counts[order.Shard(1_700_000_000_000_000+i*8, shards)]++
	}
	for shard, n := range counts {
		require.InDelta(t, each, n, each*0.2, "shard %d", shard)
	}
}
