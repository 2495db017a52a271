package catalog

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// lister counts its calls.
type lister struct {
	calls atomic.Int64
	now   func() time.Time
	err   error
}

func (l *lister) Sales(_ context.Context, below int64, limit int) ([]seckill.View, error) {
	l.calls.Add(1)
	return []seckill.View{{Sale: seckill.Sale{GoodsID: below + int64(limit)}, Now: l.now()}}, l.err
}

func TestListCache_ReadsAPageOncePerSecond(t *testing.T) {
	clock := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	now := func() time.Time { return clock }
	l := &lister{now: now}
	cache := NewListCache(l.Sales, now)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			views, err := cache.Sales(t.Context(), 0, 20)
			require.NoError(t, err)
			require.EqualValues(t, 20, views[0].GoodsID)
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, l.calls.Load())
	clock = clock.Add(999 * time.Millisecond)
	views, err := cache.Sales(t.Context(), 0, 20)
	require.NoError(t, err)
	require.EqualValues(t, 1, l.calls.Load())
	require.Equal(t, clock, views[0].Now, "the cache adds the page's age")
	clock = clock.Add(time.Millisecond)
	_, err = cache.Sales(t.Context(), 0, 20)
	require.NoError(t, err)
	require.EqualValues(t, 2, l.calls.Load())
}
