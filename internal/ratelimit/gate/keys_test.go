package gate_test

import (
	"context"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit/gate"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/ratelimit/rules"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/internal/testing/testclock"
)

// TestGate_InventedKeysDoNotFillRedis invents 50,000 addresses, with room for 5,000 limiters in
// Redis. Redis holds no more. The others are decided by the node, which also limits each address.
func TestGate_InventedKeysDoNotFillRedis(t *testing.T) {
	const room, nodes, invented = 5000, 2, 50_000
	client, meter := steadyClient(t, servers.Redis(t).Addr()), &counters{}
	g := newGate(t, book(t, `{rules: [{name: r, by: [ip], algorithm: token_bucket, limit: 5,
		interval: 60m, burst: 5}]}`), redislimit.New(client, nil), gate.Options{
		Deadline: unhurried, MaxKeys: room, Count: meter.count, Nodes: func() int { return nodes },
	})
	ask := func(n int) bool {
		ip := netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
		return decide(t, g, "r", rules.Attributes{IP: func() netip.Addr { return ip }}).Allowed
	}
	for n := range invented {
		if !ask(n) {
			t.Fatalf("address %d is refused", n)
		}
	}
	ctx := context.Background()
	keys := must.Get(client.DBSize(ctx).Result())(t)
	require.LessOrEqual(t, keys, int64(room))
	require.Greater(t, keys, int64(room*9/10))
	require.Equal(t, invented-keys, meter.of(gate.EventManyKeys))
	key := must.Get(client.RandomKey(ctx).Result())(t)
	size := must.Get(client.MemoryUsage(ctx, key).Result())(t)
	t.Logf("%d keys in Redis, %d bytes each", keys, size)
	require.LessOrEqual(t, size, int64(300))

	admitted := 0 // of a new address
	for range 10 {
		if ask(1 << 24) {
			admitted++
		}
	}
	require.Equal(t, 2, admitted, "this node's share of five")
}

// TestGate_IdleKeysInRedisCount invents users of smooth_bursty, whose limiters are full within a
// second. Redis keeps each for a day, because a new one is not full.
func TestGate_IdleKeysInRedisCount(t *testing.T) {
	const room = 640
	client, clock := steadyClient(t, servers.Redis(t).Addr()), testclock.New()
	g := newGate(t, book(t, `{rules: [{name: r, by: [user], algorithm: smooth_bursty,
		permitsPerSecond: 10}]}`), redislimit.New(client, nil),
		gate.Options{Deadline: unhurried, MaxKeys: room, Now: clock.Now})
	for n := range 3 * room {
		require.True(t, decide(t, g, "r", rules.Attributes{User: strconv.Itoa(n)}).Allowed)
		clock.Add(time.Second)
	}
	require.LessOrEqual(t, must.Get(client.DBSize(t.Context()).Result())(t), int64(room))
}
