package rebuild

import (
	"cmp"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// over are two sales that are over. The servers fail for the first.
var over = []seckill.Sale{{GoodsID: 1, Epoch: 1}, {GoodsID: 2, Epoch: 1}}

type retiringStore struct {
	Store
	ahead     time.Duration // of the database's clock
	retired   []int64
	removedTo time.Time
	from      []time.Time // of the pages
}

func (s *retiringStore) Now(context.Context) (time.Time, error) {
	return time.Now().Add(s.ahead), nil
}

func (s *retiringStore) OverBefore(
	_ context.Context, _ time.Time, above int64, _ int,
) ([]seckill.Sale, error) {
	if above > 0 {
		return nil, nil
	}
	return over, nil
}

func (s *retiringStore) Retire(
	_ context.Context, sale seckill.Sale, _, _ time.Time,
) (bool, error) {
	if sale.GoodsID == 1 {
		return false, errDown
	}
	s.retired = append(s.retired, sale.GoodsID)
	return true, nil
}

func (s *retiringStore) RetiredBetween(
	_ context.Context, from, to time.Time, above int64, _ int,
) ([]seckill.Sale, error) {
	s.removedTo, s.from = to, append(s.from, from)
	if above > 0 {
		return nil, nil
	}
	return over, nil
}

type retiringRedis struct {
	Redis
	removed []int64
	up      bool          // no sale fails
	view    *seckill.View // of each sale; nil for one at rest
}

var atRest = seckill.View{Sale: seckill.Sale{Epoch: 1}, Gate: seckill.GateOpen}

func (r *retiringRedis) View(context.Context, int64) (seckill.View, error) {
	return *cmp.Or(r.view, &atRest), nil
}

func (r *retiringRedis) Retire(_ context.Context, sale seckill.Sale) (bool, error) {
	if sale.GoodsID == 1 && !r.up {
		return false, errDown
	}
	r.removed = append(r.removed, sale.GoodsID)
	return true, nil
}

// TestRetirer_FailingSaleHoldsUpNoOther checks that the retirer retires and removes a sale although
// both steps fail for the sale before it.
func TestRetirer_FailingSaleHoldsUpNoOther(t *testing.T) {
	store, redis := &retiringStore{}, &retiringRedis{}
	retirer := Retirer{Store: store, Redis: redis, Log: slog.New(slog.DiscardHandler)}
	require.ErrorIs(t, retirer.RunOnce(t.Context()), errDown)
	require.Equal(t, []int64{2}, store.retired)
	require.Equal(t, []int64{2}, redis.removed)
}

// TestRetirer_WaitsForWhatIsInFlight checks that no sale is retired while Redis alone may have an
// order of it: a Redis that loses a retired sale is not filled again. Nor is one whose merchant has
// just moved its end to the day before yesterday, while Redis lacks that and still sells: no worker
// brings a change of a retired sale into Redis.
func TestRetirer_WaitsForWhatIsInFlight(t *testing.T) {
	for name, change := range map[string]func(v *seckill.View){
		"a pending order":  func(v *seckill.View) { v.Pending = 1 },
		"an outbox entry":  func(v *seckill.View) { v.Outbox = 1 },
		"a shut gate":      func(v *seckill.View) { v.Gate = seckill.GateShut },
		"an earlier epoch": func(v *seckill.View) { v.Epoch = 0 },
		"a later end":      func(v *seckill.View) { v.EndAt = time.Now().Add(time.Hour) },
	} {
		view := atRest
		change(&view)
		store, redis := &retiringStore{}, &retiringRedis{up: true, view: &view}
		retirer := Retirer{Store: store, Redis: redis, Log: slog.New(slog.DiscardHandler)}
		require.NoError(t, retirer.RunOnce(t.Context()), name)
		require.Empty(t, store.retired, name)
	}
}

// TestRetirer_RemovesByTheDatabasesClock checks that a worker whose clock is an hour off removes
// what other workers retired.
func TestRetirer_RemovesByTheDatabasesClock(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		store, redis := &retiringStore{ahead: off}, &retiringRedis{}
		retirer := Retirer{Store: store, Redis: redis, Log: slog.New(slog.DiscardHandler)}
		require.ErrorIs(t, retirer.RunOnce(t.Context()), errDown)
		require.WithinDuration(t, time.Now().Add(off-removeAfter), store.removedTo, 30*time.Minute)
	}
}

// TestRetirer_RemovesWhatNobodyRemoved checks that rounds cover all sales that no round before has
// removed: those of the time without a consumer, and those of a master that was down. Only one
// round an hour reads the old ones.
func TestRetirer_RemovesWhatNobodyRemoved(t *testing.T) {
	store, redis := &retiringStore{}, &retiringRedis{}
	retirer := Retirer{Store: store, Redis: redis, Log: slog.New(slog.DiscardHandler)}
	first := func() time.Time {
		store.from = nil
		_ = retirer.RunOnce(t.Context()) // the mark of a sale fails in each
		return store.from[0]
	}
	requireAgo := func(want time.Duration) {
		t.Helper()
		require.WithinDuration(t, time.Now().Add(store.ahead-want), first(), 30*time.Minute)
	}
	require.Zero(t, first())
	requireAgo(removeWindow)
	store.ahead += removeWindow
	require.Zero(t, first(), "a removal failed")
	requireAgo(removeWindow)
	redis.up = true
	requireAgo(removeWindow)
	store.ahead += removeWindow
	require.Zero(t, first(), "the old ones have not been tried since")
	store.ahead += removeWindow
	requireAgo(2 * removeWindow)
}
