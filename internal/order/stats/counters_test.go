package stats

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// fakeStore is a CounterStore with one sale. A test can take it down.
type fakeStore struct {
	goods int64
	down  bool
	calls int
	got   Counts
}

func (s *fakeStore) AddCounts(_ context.Context, counts map[int64]Counts) (map[int64]bool, error) {
	s.calls++
	if s.down {
		return nil, errors.New("down")
	}
	s.got.Orders += counts[s.goods].Orders
	for r, n := range counts[s.goods].Refusals {
		s.got.Refusals[r] += n
	}
	return map[int64]bool{s.goods: true}, nil
}

func (s *fakeStore) Rates(context.Context, int64) (Rates, error) { return Rates{}, nil }

// TestCounters_FlushOnceForAllCounts checks that counting makes no call to the store, and that one
// flush adds all counts.
func TestCounters_FlushOnceForAllCounts(t *testing.T) {
	store := &fakeStore{goods: 1, got: Counts{Refusals: map[seckill.Reason]int64{}}}
	counters := NewCounters(store, slog.New(slog.DiscardHandler))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				counters.Refused(1, seckill.SoldOut)
				counters.Refused(1, "OK")
				counters.Took(1, 2)
			}
		})
	}
	all.Wait()
	require.Zero(t, store.calls, "counting costs no call")
	counters.Flush(t.Context())
	counters.Flush(t.Context())
	require.Equal(t, 1, store.calls, "an empty flush makes no call")
	require.Equal(t,
		Counts{Orders: 16000, Refusals: map[seckill.Reason]int64{seckill.SoldOut: 8000}}, store.got)
}

// TestCounters_DropInventedGoods checks that requests for invented goods take bounded memory until
// the next flush. The counters drop the counts of a flush that failed.
func TestCounters_DropInventedGoods(t *testing.T) {
	store := &fakeStore{goods: 1, got: Counts{Refusals: map[seckill.Reason]int64{}}}
	counters := NewCounters(store, slog.New(slog.DiscardHandler))
	counters.Refused(1, seckill.SoldOut)
	for id := range int64(3 * maxSales) {
		counters.Refused(10+id, seckill.BadPath)
	}
	require.EqualValues(t, maxSales, counters.size.Load())
	counters.Flush(t.Context())
	require.EqualValues(t, 1, counters.size.Load(), "only the existing sale remains")
	store.down = true
	counters.Refused(1, seckill.SoldOut)
	counters.Flush(t.Context())
	store.down = false
	counters.Flush(t.Context())
	require.EqualValues(t, 1, store.got.Refusals[seckill.SoldOut])
	require.Zero(t, counters.size.Load())
}
