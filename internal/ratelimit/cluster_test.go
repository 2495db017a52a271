package ratelimit_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/testing/servers"
)

// goodsOn are so many goods whose limiters a master keeps.
func goodsOn(t *testing.T, c *servers.RedisNodes, master *servers.RedisServer, n int) (list []int64) {
	t.Helper()
	for goods := int64(1); len(list) < n; goods++ {
		keeper, err := c.MasterOf(t.Context(), ratelimit.GoodsKey(goods))
		require.NoError(t, err)
		if keeper == master {
			list = append(list, goods)
		}
	}
	return list
}

// Of a cluster only the limiters of the master that is away are not asked.
func TestAMasterThatIsAwayLeavesOthersLimitersAlone(t *testing.T) {
	cluster := servers.RedisCluster(t, 3, 0)
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: cluster.Addrs(), DisableIdentity: true, ContextTimeoutEnabled: true, DialerRetries: 1, DialTimeout: 50 * ms,
	})
	t.Cleanup(func() { _ = client.Close() })
	g := newGate(t, book(t, downRules), ratelimit.NewRedis(client), ratelimit.GateOptions{Cluster: true, Deadline: 2 * time.Second})
	dead := goodsOn(t, cluster, cluster.Nodes[0], 10)
	alive := append(goodsOn(t, cluster, cluster.Nodes[1], 10), goodsOn(t, cluster, cluster.Nodes[2], 10)...)
	require.NoError(t, cluster.Nodes[0].Kill())
	for range 3 {
		for _, goods := range dead {
			require.True(t, decide(t, g, "closed", ratelimit.Attributes{Goods: goods}).Unavailable)
		}
		for _, goods := range alive {
			out := decide(t, g, "closed", ratelimit.Attributes{Goods: goods})
			require.True(t, out.Allowed && !out.Undecided, "%+v", out)
		}
	}
}

// Slots by our own reckoning are Redis'.
func TestSlotsAreThoseOfRedis(t *testing.T) {
	cluster := env.RedisCluster(t)
	for _, key := range []string{"", "a", "sk:{42}:buyers", "{42}:ratelimit:a:42", "ratelimit:{rules}:nodes", "{}a", "a{b", "{a}{b}", "买家"} {
		want, err := cluster.SlotOf(context.Background(), key)
		require.NoError(t, err)
		require.Equal(t, want, ratelimit.SlotOf(key), "%q", key)
	}
}
