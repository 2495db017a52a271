package gate_test

import (
	"context"
	"testing"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
)

// BenchmarkGate_HotKey asks for one key: nearly all answers come from the denial cache, or from this
// node's memory.
func BenchmarkGate_HotKey(b *testing.B) {
	for name, scope := range map[string]string{"shared": "global", "node": "node"} {
		b.Run(name, func(b *testing.B) {
			g := newGate(b, book(b, `{rules: [{name: r, by: [goods], algorithm: token_bucket,
				permitsPerSecond: 1000, scope: `+scope+`}]}`), ratelimit.NewMemory(nil), gate.Options{})
			attrs := goods(1)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = g.Decide(context.Background(), attrs, gate.Check{Rule: "r"})
			}
		})
	}
}
