package redisstore

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order/stats"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestAddCounts_SumsAllNodes checks that the counts of several calls add up, and that goods without
// a sale are ignored. Seconds that Rates no longer reads are removed.
func (s fixture) TestAddCounts_SumsAllNodes(t *testing.T) {
	s.load(onSale(10, 5))
	counted := map[int64]*stats.Counts{
		goods: {Orders: 30, Refusals: map[apierror.Reason]int64{
			apierror.SoldOut: 2, apierror.BadPath: 1,
		}},
		goods + 1: {Orders: 5, Refusals: map[apierror.Reason]int64{apierror.SoldOut: 7}}, // no sale
	}
	rates, now := keysOf(goods).orderRates(), must.Get(s.serverTime(t.Context(), keysOf(goods)))(t)
	second := func(ago int64) string { return strconv.FormatInt(now.Unix()-ago, 10) }
	kept := second(rateWindowSeconds)
	require.NoError(t, s.client.HSet(t.Context(), rates, second(60), 5, kept, 0,
		second(-3600), 5).Err())
	for range 2 {
		require.NoError(t, s.AddCounts(t.Context(), counted))
	}
	require.False(t, s.client.HExists(t.Context(), rates, second(60)).Val())
	require.False(t, s.client.HExists(t.Context(), rates, second(-3600)).Val())
	require.True(t, s.client.HExists(t.Context(), rates, kept).Val())
	const week = 7 * 24 * time.Hour
	require.Greater(t, s.client.TTL(t.Context(), keysOf(goods).counters()).Val(), week-time.Hour)
	require.Positive(t, s.client.TTL(t.Context(), rates).Val())
	var p stats.Rates
	require.Eventually(t, func() bool { // Rates reads only seconds that are over
		var err error
		p, err = s.Rates(t.Context(), goods)
		return err == nil && p.OrdersPerSecond > 0
	}, time.Minute, 50*time.Millisecond)
	require.InDelta(t, 6.0, p.OrdersPerSecond, 3.1, "the two calls may count in different seconds")
	refusals := map[apierror.Reason]int64{apierror.SoldOut: 4, apierror.BadPath: 2}
	require.Equal(t, refusals, p.Refusals)
	require.WithinDuration(t, time.Now(), p.Since, time.Minute)
	p = must.Get(s.Rates(t.Context(), goods+1))(t)
	require.Empty(t, p.Refusals)
	require.Zero(t, p.Since)
	require.Zero(t, p.OrdersPerSecond)
}
