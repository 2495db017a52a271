package workers

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestEach_SlowItemDoesNotDelayOthers checks that an item that blocks delays no other, that few run
// at a time, and that Each returns after all of them.
func TestEach_SlowItemDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		done, running, most := 0, 0, 0
		items := make([]time.Duration, 5*concurrent)
		for i := range items {
			items[i] = time.Second
		}
		items[0] = time.Hour
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			Each(t.Context(), items, func(_ context.Context, took time.Duration) {
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				time.Sleep(took)
				mu.Lock()
				running, done = running-1, done+1
				mu.Unlock()
			})
		}()
		time.Sleep(time.Minute)
		mu.Lock()
		require.Equal(t, len(items)-1, done, "only the slow one runs")
		require.Equal(t, concurrent, most)
		mu.Unlock()
		<-ended
		require.Equal(t, len(items), done)
	})
}

// TestEach_EndsWithItsContext checks that no work starts after the context has ended.
func TestEach_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	Each(ctx, []int{1, 2}, func(context.Context, int) { t.Error("started") })
}
