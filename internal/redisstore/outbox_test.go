package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

// TestUnconfirmed_StepsOfTheClockHideNothing adds entries with ids as they are after Redis' clock
// was ahead by up to an hour. The ids of later entries are above those.
func (s fixture) TestUnconfirmed_StepsOfTheClockHideNothing(t *testing.T) {
	now := must.Get(s.serverTime(t.Context(), keysOf(goods)))(t)
	var ids []string
	for _, at := range []time.Time{
		now.Add(-time.Hour), now.Add(20 * time.Minute), now.Add(time.Hour),
	} {
		ids = append(ids, fmt.Sprintf("%d-0", at.UnixMilli()))
	}
	for _, id := range ids {
		require.NoError(t, s.client.XAdd(t.Context(), &redis.XAddArgs{
			Stream: keysOf(goods).outbox(), ID: id, Values: []any{"b", "[]"},
		}).Err())
	}
	for _, age := range []time.Duration{0, time.Second} {
		var got []string
		for _, e := range must.Get(s.Unconfirmed(t.Context(), goods, age, 10))(t) {
			got = append(got, e.ID)
		}
		require.Equal(t, ids, got)
	}
	require.Len(t, must.Get(s.Unconfirmed(t.Context(), goods, 0, 2))(t), 2, "at most count")
	early := must.Get(s.Unconfirmed(t.Context(), goods, 2*time.Hour, 10))(t)
	require.Len(t, early, 2, "the first entry is younger than two hours")
}

// addEntry adds an entry to the outbox of a goods.
func (s fixture) addEntry(goodsID int64) {
	s.t.Helper()
	require.NoError(s.t, s.client.XAdd(s.t.Context(), &redis.XAddArgs{
		Stream: keysOf(goodsID).outbox(), Values: []any{"b", "[]"},
	}).Err())
}

// TestWithEntries_FindsThemOnEveryMaster asks for goods of every master, of which each second one
// has an entry.
func (s fixture) TestWithEntries_FindsThemOnEveryMaster(t *testing.T) {
	var goodsIDs, filled []int64
	for id := int64(1); id <= 20; id++ {
		if goodsIDs = append(goodsIDs, id); id%2 == 0 {
			s.addEntry(id)
			filled = append(filled, id)
		}
	}
	require.Equal(t, filled, must.Get(s.WithEntries(t.Context(), goodsIDs))(t))
	require.Empty(t, must.Get(s.WithEntries(t.Context(), nil))(t))
}
