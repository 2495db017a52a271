package gate_test

import (
	"context"
	"fmt"
	"testing"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/testing/servers"
)

// BenchmarkGate_Decide asks for one hot key, of which nearly all requests are denied, and for
// 50,000 keys. With scope global the hot key's answers come from the denial cache.
func BenchmarkGate_Decide(b *testing.B) {
	for _, scope := range []string{"node", "global"} {
		for _, keys := range []int{1, 50_000} {
			b.Run(fmt.Sprintf("%s/%d", scope, keys), func(b *testing.B) {
				shared := gate.Store(ratelimit.NewMemory(nil))
				if keys > 1 && scope == "global" {
					shared = redislimit.New(steadyClient(b, servers.Redis(b).Addr()), nil)
				}
				g := newGate(b, book(b, `{rules: [{name: r, by: [user], algorithm: token_bucket,
					permitsPerSecond: 1000, scope: `+scope+`}]}`), shared,
					gate.Options{Deadline: unhurried})
				users := make([]string, keys)
				for i := range users {
					users[i] = fmt.Sprintf("user-%d", i)
				}
				i := 0
				b.ReportAllocs()
				for b.Loop() {
					_, _ = g.Decide(context.Background(), rules.Attributes{User: users[i%keys]},
						gate.Check{Rule: "r"})
					i++
				}
			})
		}
	}
}
