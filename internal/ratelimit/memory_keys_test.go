package ratelimit_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/testclock"
)

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// address is the n-th address of IPv4, as a rule's key.
func address(n int) string {
	return fmt.Sprintf("ratelimit:{session:%d.%d.%d.%d}", n>>24, n>>16&255, n>>8&255, n&255)
}

// TestMemory_InventedKeysStayWithinTheBound invents more addresses than the store holds. A bound of
// 24 MiB stands for the store's own. The store stays below it, counts its bytes right, and
// still limits: a new address gets its burst and no more.
func TestMemory_InventedKeysStayWithinTheBound(t *testing.T) {
	for name, l := range map[string]ratelimit.Limit{
		"5 in 60 s": {Algorithm: ratelimit.TokenBucket, Limit: 5, IntervalSeconds: 60, Burst: 5},
		"log of 5":  window(ratelimit.SlidingLog, 5, 60),
	} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			m := ratelimit.NewMemory(testclock.New().Now)
			m.SetMost(24 << 20)
			r := ratelimit.Request{Params: paramsOf(t, l), N: 1}
			for n := range 125_000 {
				r.Key = address(n)
				if d, err := m.TakeOne(&r); err != nil || !d.Allowed {
					t.Fatalf("key %d: %+v, %v", n, d, err) // require takes longer than the store
				}
			}
			used, keys := heap()-before, m.Len()
			t.Logf("%d keys, %d bytes each, %d counted", keys, used/int64(keys),
				m.Bytes()/int64(keys))
			require.Greater(t, keys, 75_000)
			require.LessOrEqual(t, used, int64(30<<20))
			require.LessOrEqual(t, m.Bytes(), int64(24<<20+1000))
			r.Key, r.N = address(1<<24), 6
			require.False(t, must.Get(m.TakeOne(&r))(t).Allowed)
			r.N = 5
			require.True(t, must.Get(m.TakeOne(&r))(t).Allowed)
			require.False(t, must.Get(m.TakeOne(&r))(t).Allowed)
			runtime.KeepAlive(m)
		})
	}
}

// TestMemory_PartsOfWindowsCount fills windows of 500 parts, of which each key needs 8 kB and
// more. A small bound stands for the store's own.
func TestMemory_PartsOfWindowsCount(t *testing.T) {
	const most = 2 << 20
	clock, before := testclock.New(), heap()
	m := ratelimit.NewMemory(clock.Now)
	m.SetMost(most)
	l := window(ratelimit.SubWindows, 1_000_000, 500)
	l.Parts = 500
	r := ratelimit.Request{Params: paramsOf(t, l), N: 1}
	for range 500 {
		for key := range 1000 {
			r.Key = address(key)
			if d, err := m.TakeOne(&r); err != nil || !d.Allowed {
				t.Fatalf("key %d: %+v, %v", key, d, err)
			}
		}
		clock.Add(time.Second)
	}
	t.Logf("%d keys, %d bytes, %d counted", m.Len(), heap()-before, m.Bytes())
	require.LessOrEqual(t, heap()-before, int64(most*3/2))
	require.LessOrEqual(t, m.Bytes(), int64(most+64<<10))
	runtime.KeepAlive(m)
}

// TestMemory_TakeAllocatesNothing checks a limiter that exists.
func TestMemory_TakeAllocatesNothing(t *testing.T) {
	m := ratelimit.NewMemory(nil)
	for _, l := range kinds(60)[:3] {
		r := ratelimit.Request{Key: string(l.Algorithm), Params: paramsOf(t, l), N: 1}
		must.Get(m.TakeOne(&r))(t)
		require.Zero(t, testing.AllocsPerRun(1000, func() { _, _ = m.TakeOne(&r) }), l.Algorithm)
	}
}

// BenchmarkMemory_Take has one hot key, and 50,000 keys. Each goroutine begins at another key.
func BenchmarkMemory_Take(b *testing.B) {
	params := must.Get(tokenBucket(1e6, 1).Params())(b)
	for _, keys := range []int{1, 50_000} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			m, names := ratelimit.NewMemory(nil), make([]string, keys)
			for i := range names {
				names[i] = address(i)
			}
			var callers atomic.Int64
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				r := ratelimit.Request{Params: params, N: 1}
				start := int(callers.Add(1)-1) * keys / runtime.GOMAXPROCS(0)
				for i := start; pb.Next(); i++ {
					r.Key = names[i%keys]
					_, _ = m.TakeOne(&r)
				}
			})
		})
	}
}
