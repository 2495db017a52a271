package stats

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
)

// fakeStore is a CounterStore with one sale, of goods 1. A test can take it down.
type fakeStore struct {
	CounterStore
	down  bool
	calls int
	got   Counts
}

func (s *fakeStore) AddCounts(_ context.Context, counts map[int64]*Counts) error {
	s.calls++
	if s.down {
		return errors.New("down")
	}
	s.got = *counts[1]
	return nil
}

// TestCounters_FlushOnceForAllCounts checks that counting makes no call to the store, and that one
// flush adds all counts.
func TestCounters_FlushOnceForAllCounts(t *testing.T) {
	store := &fakeStore{}
	counters := NewCounters(store, slog.New(slog.DiscardHandler))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				counters.Refused(1, apierror.SoldOut)
				counters.Refused(1, "OK")
				counters.Took(1, 2)
			}
		})
	}
	all.Wait()
	require.Zero(t, store.calls, "counting costs no call")
	counters.flush(t.Context())
	counters.flush(t.Context())
	require.Equal(t, 1, store.calls, "an empty flush makes no call")
	require.Equal(t,
		Counts{
			Orders: 16000, Refusals: map[apierror.Reason]int64{apierror.SoldOut: 8000},
		}, store.got)
}

// TestCounters_DropInventedGoods checks that requests for invented goods take bounded memory until
// the next flush. The counters drop the counts of a flush that failed.
func TestCounters_DropInventedGoods(t *testing.T) {
	store := &fakeStore{down: true}
	counters := NewCounters(store, slog.New(slog.DiscardHandler))
	for id := range int64(3 * maxSales) {
		counters.Refused(1+id, apierror.BadPath)
	}
	require.Len(t, counters.goods, maxSales)
	counters.flush(t.Context())
	store.down = false
	counters.Refused(1, apierror.SoldOut)
	counters.flush(t.Context())
	require.Equal(t, map[apierror.Reason]int64{apierror.SoldOut: 1}, store.got.Refusals)
}
