package rebuild

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

var errDown = errors.New("down")

type fakeStore struct {
	Store
	ahead  time.Duration // of the database's clock
	begun  bool
	payBy  time.Time
	readAt time.Time
}

func (s *fakeStore) Now(context.Context) (time.Time, error) { return time.Now().Add(s.ahead), nil }

func (s *fakeStore) BeginEpoch(
	_ context.Context, _, _ int64, at order.Times,
) (seckill.Sale, error) {
	s.begun, s.payBy = true, at.PayBy
	return seckill.Sale{}, nil
}

func (s *fakeStore) HoldingPages(
	_ context.Context, _, _ int64, redisNow time.Time,
) iter.Seq2[[]order.Held, error] {
	s.readAt = redisNow
	return nil
}

type fakeRedis struct {
	Redis
	view seckill.View
	err  error
}

func (r fakeRedis) View(context.Context, int64) (seckill.View, error) {
	return r.view, r.err
}

func (r fakeRedis) Load(
	context.Context, int64, iter.Seq2[[]order.Held, error], func() (seckill.Sale, error),
) (bool, error) {
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
			require.Equal(t, redis.view.Now, store.readAt)
		}
	}
}

// TestOpen_PaymentEndsByTheDatabasesClock checks a parked order that an epoch begins with. It can
// be paid for its whole time, although the worker's clock is an hour off.
func TestOpen_PaymentEndsByTheDatabasesClock(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		store := &fakeStore{ahead: off}
		_, err := Opener{Store: store, Redis: fakeRedis{}, PaymentTimeout: 5 * time.Hour}.
			Open(t.Context(), 1, 1)
		require.NoError(t, err)
		require.WithinDuration(t, time.Now().Add(off+5*time.Hour), store.payBy, 30*time.Minute)
	}
}

func (r fakeRedis) LockRebuild(context.Context, int64, time.Duration) (func(), bool, error) {
	return nil, false, r.err
}

// TestExpose_NeedsNoRedis checks that a draft is exposed in MySQL while Redis is down, or has the
// lock of another process. The Rebuilder loads it later. Any other epoch needs the time of Redis.
func TestExpose_NeedsNoRedis(t *testing.T) {
	store, down := &fakeStore{}, fakeRedis{err: errDown}
	_, err := Opener{Store: store, Redis: down}.Open(t.Context(), 1, FirstToken+1)
	require.ErrorIs(t, err, errDown)
	require.False(t, store.begun)
	_, err = Opener{Store: store, Redis: down}.Expose(t.Context(), 1)
	require.ErrorIs(t, err, errDown)
	require.True(t, store.begun)
	store = &fakeStore{}
	_, err = Opener{Store: store, Redis: fakeRedis{}}.Expose(t.Context(), 1)
	require.NoError(t, err)
	require.True(t, store.begun)
}

// currentStore has the row of a sale as it is after the last batch of a load.
type currentStore struct {
	Store
	now seckill.Sale
}

func (s currentStore) Sale(context.Context, int64) (seckill.Sale, error) { return s.now, nil }

// TestOpen_LoadsTheRowWithTheUnitsOfItsEpoch checks what Redis gets if the row has changed while
// the orders were staged.
func TestOpen_LoadsTheRowWithTheUnitsOfItsEpoch(t *testing.T) {
	began := seckill.Sale{Epoch: 3, Version: 7, Title: "Lamp", Total: 10, Stock: 4}
	loads := func(change func(now *seckill.Sale)) (seckill.Sale, error) {
		now := began
		now.Version, now.Total, now.Stock, now.UpdatedAt = 9, 12, 7, time.Unix(9, 0)
		change(&now)
		return Opener{Store: currentStore{now: now}}.unlessChanged(t.Context(), began)
	}
	want := began
	want.Version, want.UpdatedAt = 9, time.Unix(9, 0)
	got, err := loads(func(*seckill.Sale) {})
	require.NoError(t, err)
	require.Equal(t, want, got, "units that were added or came back since are stock moves")
	_, err = loads(func(now *seckill.Sale) { now.Epoch++ })
	require.ErrorIs(t, err, ErrFenced)
	_, err = loads(func(now *seckill.Sale) { now.Title = "Chair" })
	require.ErrorIs(t, err, ErrFenced)
}
