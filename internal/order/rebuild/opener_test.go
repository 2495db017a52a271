package rebuild

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

type fakeStore struct {
	Store
	began time.Time
}

func (s *fakeStore) BeginEpoch(
	_ context.Context, _, _ int64, now time.Time,
) (Snapshot, error) {
	s.began = now
	return Snapshot{}, nil
}

type fakeRedis struct {
	Redis
	view seckill.View
	err  error
}

func (r fakeRedis) View(context.Context, int64) (seckill.View, error) {
	return r.view, cmp.Or(r.err, seckill.ErrNotLoaded)
}

func (r fakeRedis) Load(context.Context, Snapshot) (bool, error) { return r.err == nil, r.err }

// TestOpen_UsesRedisClock checks that the worker's clock does not choose the final orders of a
// load, also where Redis has lost the sale: their paths end by Redis' clock.
func TestOpen_UsesRedisClock(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		store, redis := &fakeStore{}, fakeRedis{view: seckill.View{Now: time.Now().Add(off)}}
		_, err := Opener{Store: store, Redis: redis}.Open(t.Context(), 1, 1)
		require.NoError(t, err)
		require.Equal(t, redis.view.Now, store.began)
	}
}

// TestOpen_BeginsTheFirstEpochWithoutRedis checks that a draft is exposed in MySQL while Redis is
// down. The Rebuilder loads it later.
func TestOpen_BeginsTheFirstEpochWithoutRedis(t *testing.T) {
	store, down := &fakeStore{}, errors.New("down")
	_, err := Opener{Store: store, Redis: fakeRedis{err: down}}.Open(t.Context(), 1, FirstToken)
	require.ErrorIs(t, err, down)
	require.False(t, store.began.IsZero())
}
