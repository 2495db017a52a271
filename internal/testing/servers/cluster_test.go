package servers_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

func clusterClient(t *testing.T, c *servers.RedisNodes) *redis.ClusterClient {
	t.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), MaxRedirects: 8})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestRedisCluster_SlotMovesAndCanStopHalfWay checks the answers to clients during a slot move, and
// the result after it.
func TestRedisCluster_SlotMovesAndCanStopHalfWay(t *testing.T) {
	t.Parallel()
	c := servers.RedisCluster(t, servers.RedisClusterOptions{})
	client := clusterClient(t, c)
	slot := must.Get(c.SlotOf(t.Context(), "{goods}"))(t)
	from := must.Get(c.MasterOfSlot(t.Context(), slot))(t)
	to := c.Nodes[0]
	if from == to {
		to = c.Nodes[1]
	}
	require.NoError(t, client.MSet(t.Context(), "{goods}a", 1, "{goods}b", 2).Err())

	move := must.Get(c.BeginMove(t.Context(), slot, to))(t)
	moved := must.Get(move.Keys(t.Context(), 1))(t)
	require.Equal(t, 1, moved)
	direct := clientOf(t, from)
	require.ErrorContains(t, direct.MGet(t.Context(), "{goods}a", "{goods}b").Err(), "TRYAGAIN")
	require.ErrorContains(t, direct.Get(t.Context(), "{goods}new").Err(), "ASK")
	for range 2 {
		_, err := move.Keys(t.Context(), 10)
		require.NoError(t, err)
	}
	require.NoError(t, move.Finish(t.Context()))
	require.Equal(t, []any{"1", "2"}, client.MGet(t.Context(), "{goods}a", "{goods}b").Val())
	now := must.Get(c.MasterOfSlot(t.Context(), slot))(t)
	require.Equal(t, to, now)
	require.ErrorIs(t, c.MoveSlot(t.Context(), slot, to), servers.ErrSameMaster)
	require.NoError(t, c.MoveSlot(t.Context(), slot, from))
	require.NoError(t, c.Settled(t.Context()))
}

// keepsCopies checks that every master stores keys and has a replica. Then it deletes all keys.
func keepsCopies(t *testing.T, c *servers.RedisNodes, client *redis.ClusterClient) {
	t.Helper()
	for i, master := range c.Nodes[:3] {
		require.NoError(t, client.Set(t.Context(), c.KeyOn(t, master), i, 0).Err())
		replicas := must.Get(c.ReplicasOf(t.Context(), master))(t)
		require.Equal(t, []*servers.RedisServer{c.Nodes[3+i]}, replicas)
	}
	require.NoError(t, c.FlushAll(t.Context()))
	for _, master := range c.Nodes[:3] {
		require.ErrorIs(t, client.Get(t.Context(), c.KeyOn(t, master)).Err(), redis.Nil)
	}
}

// awaitMaster waits until a node is master of a key.
func awaitMaster(t *testing.T, c *servers.RedisNodes, key string, want *servers.RedisServer) {
	t.Helper()
	require.Eventually(t, func() bool {
		master, err := c.MasterOf(context.WithoutCancel(t.Context()), key)
		return err == nil && master == want
	}, time.Minute, 50*time.Millisecond)
}

// TestRedisCluster_ReplicaTakesItsMastersPlaceInPeaceAndInNeed checks a failover on demand and a
// failover after a kill.
func TestRedisCluster_ReplicaTakesItsMastersPlaceInPeaceAndInNeed(t *testing.T) {
	t.Parallel()
	c := servers.RedisCluster(t, servers.RedisClusterOptions{Replicas: 1})
	client := clusterClient(t, c)
	keepsCopies(t, c, client)
	master, replica := c.Nodes[0], c.Nodes[3]
	key := c.KeyOn(t, master)
	require.NoError(t, client.Set(t.Context(), key, 7, 0).Err())
	require.NoError(t, c.FailOver(t.Context(), replica))
	awaitMaster(t, c, key, replica)
	require.NoError(t, replica.Kill())
	awaitMaster(t, c, key, master)
	require.NoError(t, replica.Restart(t.Context()))
	require.NoError(t, c.Settled(t.Context()))
	require.Equal(t, "7", client.Get(t.Context(), key).Val())
}

// TestRedisCluster_MasterThatIsCutOffIsReplacedAndMissesWhatItTook checks that a partitioned master
// loses the writes that it accepted after the cut.
func TestRedisCluster_MasterThatIsCutOffIsReplacedAndMissesWhatItTook(t *testing.T) {
	t.Parallel()
	c := servers.RedisCluster(t, servers.RedisClusterOptions{Replicas: 1, BusWires: true})
	master, replica := c.Nodes[0], c.Nodes[3]
	key := c.KeyOn(t, master)
	require.NoError(t, c.CutOff(t.Context(), master))
	direct := clientOf(t, master)
	require.NoError(t, direct.Set(t.Context(), key, "late", 0).Err(),
		"the old master must accept writes until the timeout")
	awaitMaster(t, c, key, replica)
	require.ErrorIs(t, clientOf(t, replica).Get(t.Context(), key).Err(), redis.Nil)
	require.NoError(t, c.Join(t.Context(), master))
	require.NoError(t, c.Settled(t.Context()))
	require.ErrorContains(t, direct.Get(t.Context(), key).Err(), "MOVED",
		"the old master must be a replica")
}

func TestRedisCluster_CutOffNeedsBusWires(t *testing.T) {
	require.ErrorIs(t, (&servers.RedisNodes{}).CutOff(t.Context(), nil), servers.ErrNoBusWires)
}
