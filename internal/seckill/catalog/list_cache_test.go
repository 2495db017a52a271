package catalog

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// lister counts how often it is asked.
type lister struct {
	asked atomic.Int64
	now   func() time.Time
	err   error
}

func (l *lister) Sales(_ context.Context, below int64, limit int) ([]seckill.View, error) {
	l.asked.Add(1)
	return []seckill.View{{Sale: seckill.Sale{GoodsID: below + int64(limit)}, Now: l.now()}}, l.err
}

func TestTheBoardLooksOnceASecond(t *testing.T) {
	clock := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	now := func() time.Time { return clock }
	l := &lister{now: now}
	b := NewListCache(l, now)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			views, err := b.Sales(t.Context(), 0, 20)
			require.NoError(t, err)
			require.EqualValues(t, 20, views[0].GoodsID)
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, l.asked.Load())
	clock = clock.Add(999 * time.Millisecond)
	views, err := b.Sales(t.Context(), 0, 20)
	require.NoError(t, err)
	require.EqualValues(t, 1, l.asked.Load())
	require.Equal(t, clock, views[0].Now, "the clock goes on")
	clock = clock.Add(time.Millisecond)
	_, err = b.Sales(t.Context(), 0, 20)
	require.NoError(t, err)
	require.EqualValues(t, 2, l.asked.Load())
	for i := range 2 * maxPages {
		_, err = b.Sales(t.Context(), int64(i), 1)
		require.NoError(t, err)
	}
	require.LessOrEqual(t, len(b.pages), maxPages, "callers can't fill the memory")
}

func TestTheBoardRemembersNoFailure(t *testing.T) {
	l := &lister{now: time.Now, err: errors.New("away")}
	b := NewListCache(l, time.Now)
	_, err := b.Sales(t.Context(), 0, 20)
	require.Error(t, err)
	l.err = nil
	_, err = b.Sales(t.Context(), 0, 20)
	require.NoError(t, err)
}
