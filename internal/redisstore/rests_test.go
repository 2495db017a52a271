package redisstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestEndRest_IsListedForEveryProcess checks that a list is not over for others who read it later.
func (s fixture) TestEndRest_IsListedForEveryProcess(t *testing.T) {
	list := func() []int64 { return must.Get(s.EndedRests(t.Context()))(t) }
	require.Empty(t, list())
	for _, id := range []int64{goods, 1<<63 - 1, goods} {
		require.NoError(t, s.EndRest(t.Context(), id))
	}
	for range 2 {
		require.ElementsMatch(t, []int64{goods, 1<<63 - 1}, list())
	}
	left := must.Get(s.client.TTL(t.Context(), endedRests).Result())(t)
	require.Positive(t, left)
	require.LessOrEqual(t, left, endedRestsKept)
}

// TestViews_ReadsEachSale checks sales of every master, one that is not there, and a Redis that
// does not have the script yet.
func (s fixture) TestViews_ReadsEachSale(t *testing.T) {
	const sales = 20
	var goodsIDs []int64
	for id := range int64(sales) {
		sale := onSale(10+id, 5)
		sale.GoodsID = id + 1
		s.load(sale)
		goodsIDs = append(goodsIDs, sale.GoodsID)
	}
	require.NoError(t, s.client.ScriptFlush(t.Context()).Err())
	views := s.Views(t.Context(), append(goodsIDs, sales+1))
	require.Equal(t, sales+1, len(views))
	for _, id := range goodsIDs {
		require.Equal(t, seckill.GateOpen, views[id].Gate)
		require.Equal(t, []int64{id, 9 + id}, []int64{views[id].GoodsID, views[id].Total})
	}
	require.Equal(t, seckill.GateMissing, views[sales+1].Gate)
}
