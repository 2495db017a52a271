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

// sharing is a CounterStore that knows one goods, or is down.
type sharing struct {
	goods int64
	down  bool
	calls int
	got   Counts
}

func (s *sharing) AddCounts(_ context.Context, counts map[int64]Counts) (map[int64]bool, error) {
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

func (s *sharing) Rates(context.Context, int64) (Rates, error) { return Rates{}, nil }

func TestATallyCountsInMemoryAndSharesAtOnce(t *testing.T) {
	store := &sharing{goods: 1, got: Counts{Refusals: map[seckill.Reason]int64{}}}
	tally := NewCounters(store, slog.New(slog.DiscardHandler))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				tally.Refused(1, seckill.SoldOut)
				tally.Refused(1, "OK")
				tally.Took(1, 2)
			}
		})
	}
	all.Wait()
	require.Zero(t, store.calls, "to count costs no call")
	tally.Flush(t.Context())
	tally.Flush(t.Context())
	require.Equal(t, 1, store.calls, "nothing is shared where nothing was counted")
	require.Equal(t, Counts{Orders: 16000, Refusals: map[seckill.Reason]int64{seckill.SoldOut: 8000}}, store.got)
}

// Goods that there are not take no room beyond a bound, and none for longer than a second; what is lost is not counted later.
func TestATallyForgetsInventedGoods(t *testing.T) {
	store := &sharing{goods: 1, got: Counts{Refusals: map[seckill.Reason]int64{}}}
	tally := NewCounters(store, slog.New(slog.DiscardHandler))
	tally.Refused(1, seckill.SoldOut)
	for id := range int64(3 * maxSales) {
		tally.Refused(10+id, seckill.BadPath)
	}
	require.EqualValues(t, maxSales, tally.size.Load())
	tally.Flush(t.Context())
	require.EqualValues(t, 1, tally.size.Load(), "the one that there is")
	store.down = true
	tally.Refused(1, seckill.SoldOut)
	tally.Flush(t.Context())
	store.down = false
	tally.Flush(t.Context())
	require.EqualValues(t, 1, store.got.Refusals[seckill.SoldOut])
	require.Zero(t, tally.size.Load())
}
