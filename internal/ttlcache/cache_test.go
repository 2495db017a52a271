package ttlcache

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

func newCache(maxEntries int) *Cache[int64, int] {
	return New[int64, int](Options{
		TTL: time.Second, MaxEntries: maxEntries, LoadTimeout: 3 * time.Second, Now: time.Now,
	})
}

// counter is a source whose n-th load returns n.
type counter struct {
	loads atomic.Int64
	takes time.Duration
	err   error
}

func (c *counter) load(ctx context.Context) (int, error) {
	n := int(c.loads.Add(1))
	select {
	case <-time.After(c.takes):
		return n, c.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func TestCacheGet_ServesAValueForItsTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, source := newCache(9), &counter{}
		for _, c := range []struct {
			after time.Duration
			want  int
		}{{0, 1}, {999 * time.Millisecond, 1}, {time.Millisecond, 2}, {time.Minute, 3}} {
			time.Sleep(c.after)
			got := must.Get(cache.Get(t.Context(), 1, source.load))(t)
			require.Equal(t, c.want, got)
		}
	})
}

func TestCacheGet_SharesOneLoadAmongConcurrentCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, source := newCache(9), &counter{takes: 100 * time.Millisecond}
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				got := must.Get(cache.Get(t.Context(), 1, source.load))(t)
				require.Equal(t, 1, got)
			})
		}
		wg.Wait()
		must.Get(cache.Get(t.Context(), 2, source.load))(t)
		require.EqualValues(t, 2, source.loads.Load(), "each key has its own load")
	})
}

func TestCacheGet_KeepsNoErrors(t *testing.T) {
	cache, source := newCache(9), &counter{err: errors.New("down")}
	_, err := cache.Get(t.Context(), 1, source.load)
	require.ErrorIs(t, err, source.err)
	source.err = nil
	got := must.Get(cache.Get(t.Context(), 1, source.load))(t)
	require.Equal(t, 2, got)
}

// TestCacheGet_LoadOutlivesItsCaller checks that a load continues after the context of its caller
// has ended. The next caller gets its value.
func TestCacheGet_LoadOutlivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, source := newCache(9), &counter{takes: 500 * time.Millisecond}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := cache.Get(ctx, 1, source.load)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		got := must.Get(cache.Get(t.Context(), 1, source.load))(t)
		require.Equal(t, 1, got, "the second caller joins the load of the first")
	})
}

func TestCacheGet_EndsASlowLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, source := newCache(9), &counter{takes: time.Hour}
		_, err := cache.Get(t.Context(), 1, source.load)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// TestCacheGet_BoundsItsEntries checks that the cache never holds more than its maximum of entries,
// and that it removes expired ones.
func TestCacheGet_BoundsItsEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, source := newCache(10), &counter{}
		for key := range int64(100) {
			must.Get(cache.Get(t.Context(), key, source.load))(t)
			require.LessOrEqual(t, len(cache.entries), 10)
		}
		time.Sleep(time.Second)
		must.Get(cache.Get(t.Context(), 99, source.load))(t)
		require.Len(t, cache.entries, 1, "expired entries make room")
	})
}

// TestCacheGet_FullCacheReplacesAnOldEntry checks that an entry that is too old is replaced in a
// full cache between two searches for old entries.
func TestCacheGet_FullCacheReplacesAnOldEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, source := newCache(2), &counter{}
		for _, key := range []int64{1, 2, 3} {
			must.Get(cache.Get(t.Context(), key, source.load))(t)
			time.Sleep(500 * time.Millisecond)
		}
		for range 2 {
			require.Equal(t, 4, must.Get(cache.Get(t.Context(), 2, source.load))(t))
		}
		require.Len(t, cache.entries, 2)
	})
}

// TestCacheGet_RestFollowsTheDurationOfALoad checks that loads that take long take a bounded part
// of the time. Callers do not wait for the next load, and no value becomes too old.
func TestCacheGet_RestFollowsTheDurationOfALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := New[int64, int](Options{
			TTL: 100 * time.Millisecond, MaxEntries: 9,
			LoadTimeout: 20 * time.Second, Now: time.Now, Rest: 10, MaxAge: time.Minute,
		})
		source := &counter{takes: 2 * time.Millisecond}
		get := func(want int, wait time.Duration) {
			t.Helper()
			began := time.Now()
			require.Equal(t, want, must.Get(cache.Get(t.Context(), 1, source.load))(t))
			require.Equal(t, wait, time.Since(began))
		}
		get(1, 2*time.Millisecond)
		time.Sleep(98 * time.Millisecond)
		source.takes = 2 * time.Second
		get(1, patience)
		get(1, patience)
		time.Sleep(time.Second)
		get(2, 0)
		time.Sleep(17*time.Second + 900*time.Millisecond)
		get(2, 0)
		time.Sleep(100 * time.Millisecond)
		source.takes = 10 * time.Second
		get(2, patience)
		time.Sleep(9500 * time.Millisecond)
		get(3, 0)
		time.Sleep(19900 * time.Millisecond)
		get(3, 0)
		time.Sleep(100 * time.Millisecond)
		get(3, patience) // at half of MaxAge
		time.Sleep(10 * time.Second)
		get(4, 0)
		time.Sleep(time.Hour)
		get(5, 10*time.Second)
	})
}
