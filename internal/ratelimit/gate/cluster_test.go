package gate_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit/gate"
	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// goodsOn returns goods ids whose limiters are on one master.
func goodsOn(
	t *testing.T, c *servers.RedisNodes, master *servers.RedisServer, n int,
) (list []int64) {
	t.Helper()
	for id := int64(1); len(list) < n; id++ {
		if must.Get(c.MasterOf(t.Context(), gate.GoodsKey(id)))(t) == master {
			list = append(list, id)
		}
	}
	return list
}

// TestGate_LostMasterAffectsOnlyItsLimiters checks that the circuit breaker covers only limiters of
// the lost master.
func TestGate_LostMasterAffectsOnlyItsLimiters(t *testing.T) {
	cluster := servers.RedisCluster(t, servers.RedisClusterOptions{})
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: cluster.Addrs(), DisableIdentity: true, ContextTimeoutEnabled: true,
		DialerRetries: 1, DialTimeout: 50 * ms,
	})
	t.Cleanup(func() { _ = client.Close() })
	g := newGate(t, book(t, downRules), redislimit.New(client, nil),
		gate.Options{Cluster: true, Deadline: 2 * time.Second})
	dead := goodsOn(t, cluster, cluster.Nodes[0], 10)
	alive := append(goodsOn(t, cluster, cluster.Nodes[1], 10),
		goodsOn(t, cluster, cluster.Nodes[2], 10)...)
	require.NoError(t, cluster.Nodes[0].Kill())
	for range 3 {
		for _, id := range dead {
			require.True(t, decide(t, g, "closed", goods(id)).Unavailable)
		}
		for _, id := range alive {
			out := decide(t, g, "closed", goods(id))
			require.True(t, out.Allowed && !out.Degraded, "%+v", out)
		}
	}
}

// TestSlotOf_EqualsRedis compares SlotOf with Redis, because the gate selects a breaker by its
// slot.
func TestSlotOf_EqualsRedis(t *testing.T) {
	cluster := env.RedisCluster(t)
	for _, key := range []string{
		"", "a", "sk:{42}:buyers", "{42}:ratelimit:a:42",
		"ratelimit:{rules}:nodes", "{}a", "a{b", "{a}{b}", "买家",
	} {
		want := must.Get(cluster.SlotOf(t.Context(), key))(t)
		require.Equal(t, want, gate.SlotOf(key), "%q", key)
	}
}
