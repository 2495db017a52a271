package ratelimit_test

import (
	"fmt"
	"testing"
	"time"

	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/ratelimit"
)

// BenchmarkLimiter_Allow has the Memory store, with one hot key and with 50,000 keys.
func BenchmarkLimiter_Allow(b *testing.B) {
	for _, keys := range []int{1, 50_000} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			l := must.Get(ratelimit.New(ratelimit.Memory(),
				ratelimit.Limit{Permits: 1000, Per: time.Second}))(b)
			defer l.Close()
			names := make([]string, keys)
			for i := range names {
				names[i] = fmt.Sprintf("user-%d", i)
			}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				_, _ = l.Allow(b.Context(), names[i%keys], 1)
				i++
			}
		})
	}
}
