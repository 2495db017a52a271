package rebuild

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

var errDown = errors.New("down")

type fakeStore struct {
	Store
	began time.Time
}

func (s *fakeStore) BeginEpoch(
	_ context.Context, _, _ int64, at Times,
) (Snapshot, error) {
	s.began = at.Redis
	return Snapshot{}, nil
}

type fakeRedis struct {
	Redis
	view seckill.View
	err  error
}

func (r fakeRedis) View(context.Context, int64) (seckill.View, error) {
	return r.view, r.err
}

func (r fakeRedis) Load(context.Context, Snapshot) (bool, error) {
	if errors.Is(r.err, errDown) {
		return false, r.err
	}
	return true, nil
}

// TestOpen_UsesRedisClock checks that the worker's clock does not choose the final orders of a
// load, also where Redis has lost the sale: their paths end by Redis' clock.
func TestOpen_UsesRedisClock(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		for _, loaded := range []error{nil, seckill.ErrNotLoaded} {
			redis := fakeRedis{view: seckill.View{Now: time.Now().Add(off)}, err: loaded}
			store := &fakeStore{}
			_, err := Opener{Store: store, Redis: redis}.Open(t.Context(), 1, 1)
			require.NoError(t, err)
			require.Equal(t, redis.view.Now, store.began)
		}
	}
}

// TestOpen_BeginsTheFirstEpochWithoutRedis checks that a draft is exposed in MySQL while Redis is
// down. The Rebuilder loads it later.
func TestOpen_BeginsTheFirstEpochWithoutRedis(t *testing.T) {
	store := &fakeStore{}
	_, err := Opener{Store: store, Redis: fakeRedis{err: errDown}}.Open(t.Context(), 1, FirstToken)
	require.ErrorIs(t, err, errDown)
	require.False(t, store.began.IsZero())
}
