package catalog

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
)

func TestListCache_ReadsAPageOncePerSecond(t *testing.T) {
	clock := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	var calls atomic.Int64
	list := func(_ context.Context, below int64, limit int) ([]seckill.View, error) {
		calls.Add(1)
		sale := seckill.Sale{GoodsID: below + int64(limit)}
		return []seckill.View{{Sale: sale, Now: clock}}, nil
	}
	cache := NewListCache(list, func() time.Time { return clock })
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			views := must.Get(cache.Sales(t.Context(), 0, 20))(t)
			require.EqualValues(t, 20, views[0].GoodsID)
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, calls.Load())
	clock = clock.Add(999 * time.Millisecond)
	views := must.Get(cache.Sales(t.Context(), 0, 20))(t)
	require.EqualValues(t, 1, calls.Load())
	require.Equal(t, clock, views[0].Now, "the cache adds the page's age")
	clock = clock.Add(time.Millisecond)
	must.Get(cache.Sales(t.Context(), 0, 20))(t)
	require.EqualValues(t, 2, calls.Load())
}
