package redisstore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// onCluster starts a cluster for one test, and a store that waits for this number of replicas.
func onCluster(t *testing.T, replicas int) (*servers.RedisNodes, fixture) {
	t.Helper()
	cluster := servers.RedisCluster(t, servers.RedisClusterOptions{Replicas: replicas})
	opts := Options{WaitReplicas: replicas, WaitTimeout: 500 * time.Millisecond}
	return cluster, fixture{New(newClient(t, cluster.Addrs()...), opts), t}
}

// moves returns the sale's slot, its master, and another master that can take it.
func moves(t *testing.T, cluster *servers.RedisNodes) (slot int, from, to *servers.RedisServer) {
	t.Helper()
	slot = must.Get(cluster.SlotOf(t.Context(), keysOf(goods).sale()))(t)
	from = must.Get(cluster.MasterOfSlot(t.Context(), slot))(t)
	for _, to = range cluster.Nodes[:3] {
		if to != from {
			return slot, from, to
		}
	}
	return slot, from, nil
}

// TestCluster_MovedSlotInvalidatesOnlyItsSales checks that moving a slot invalidates the leases of
// its sales only. After the slot returns to its first master, the sales are open again.
func TestCluster_MovedSlotInvalidatesOnlyItsSales(t *testing.T) {
	cluster, s := onCluster(t, 0)
	s.load(onSale(10, 5))
	const other = 7
	elsewhere := onSale(10, 5)
	elsewhere.GoodsID = other
	s.load(elsewhere)
	s.reserve(reservationOf(1, 7, 2))
	slot, from, to := moves(t, cluster)
	for _, at := range []struct {
		master *servers.RedisServer
		gate   seckill.GateState
	}{{to, seckill.GateLease}, {from, seckill.GateOpen}} {
		require.NoError(t, cluster.MoveSlot(t.Context(), slot, at.master))
		v := s.view()
		require.Equal(t, at.gate, v.Gate)
		require.EqualValues(t, []int64{8, 2}, []int64{v.Available, v.Pending},
			"the move loses no units")
		_, err := s.reserveIn(1, reservationOf(1, 7, 2))
		require.Equal(t, at.gate != seckill.GateOpen, err != nil, "%v", err)
		v = must.Get(s.View(t.Context(), other))(t)
		require.Equal(t, seckill.GateOpen, v.Gate, "another sale's slot stayed where it was")
	}
}

// TestCluster_MigratingSlotReservesOnce checks that Redis reserves a batch completely or not at all
// while its slot migrates. A repeated request reserves its units once.
func TestCluster_MigratingSlotReservesOnce(t *testing.T) {
	for name, replicas := range map[string]int{"without replicas": 0, "waiting for one": 1} {
		t.Run(name, func(t *testing.T) {
			cluster, s := onCluster(t, replicas)
			s.load(onSale(100, 5))
			s.reserve(reservationOf(1, 7, 1), reservationOf(2, 8, 1))
			slot, _, to := moves(t, cluster)
			move := must.Get(cluster.BeginMove(t.Context(), slot, to))(t)
			for moved := 1; moved > 0; {
				s.tryReserve(reservationOf(3, 9, 1))
				moved = must.Get(move.Keys(t.Context(), 1))(t)
			}
			require.NoError(t, move.Finish(t.Context()))
			_, err := s.reserveIn(1, reservationOf(3, 9, 1))
			require.Equal(t, seckill.GateLease, gateOf(t, err).State)
			v := s.view()
			require.EqualValues(t, 97, v.Available)
			require.Equal(t, []string{"sn1", "sn2", "sn3"},
				slices.Sorted(slices.Values(s.pendingSns())))
		})
	}
}

// tryReserve requests one unit. The store takes it, returns the earlier order or fails within its
// deadline.
func (s fixture) tryReserve(r reservation.Reservation) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Second)
	defer cancel()
	g, err := s.Reserve(ctx, goods, 1, []reservation.Reservation{r})
	if err != nil {
		require.NoError(s.t, ctx.Err(), "a store must not hang on a slot that is half moved")
		return
	}
	require.Contains(s.t, []reservation.VerdictCode{reservation.Taken, reservation.Repeated},
		g.Verdicts[0].Code)
	require.Equal(s.t, r.OrderSn, g.Verdicts[0].OrderSn)
}

// TestCluster_WaitFollowsTheMaster checks that a store that waits for replicas follows a failover.
// Such a store connects to the master itself.
func TestCluster_WaitFollowsTheMaster(t *testing.T) {
	cluster, s := onCluster(t, 1)
	s.load(onSale(10, 5))
	_, from, _ := moves(t, cluster)
	require.NoError(t,
		cluster.FailOver(t.Context(), must.Get(cluster.ReplicasOf(t.Context(), from))(t)[0]))
	_, err := s.reserveIn(1, reservationOf(1, 7, 1))
	require.Equal(t, seckill.GateLease, gateOf(t, err).State,
		"the new master answers the call, and not a redirect")
	s.load(onSaleIn(2, 10, 5))
	require.NoError(t, must.Get(s.reserveIn(2, reservationOf(1, 7, 1)))(t).NotReplicated,
		"the old master is now a replica and acknowledges the write")
}

// TestCheckReadiness_OneMasterIsEnough checks that the store is ready while one of three masters is
// down, and that one master with an unsafe setting makes it fail.
func TestCheckReadiness_OneMasterIsEnough(t *testing.T) {
	cluster, _ := onCluster(t, 0)
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: cluster.Addrs(), MaxRedirects: -1,
		DialTimeout: 100 * time.Millisecond, DialerRetries: 1,
	})
	t.Cleanup(func() { _ = client.Close() })
	s := New(client, Options{})
	becomes := func(want Readiness) {
		t.Helper()
		require.Eventually(t, func() bool { // each master has 400 ms to answer
			fit, err := s.CheckReadiness(context.WithoutCancel(t.Context()))
			return err == nil && fit == want
		}, time.Minute, 20*time.Millisecond)
	}
	becomes(Readiness{Masters: 3})
	require.Positive(t, must.Get(s.Memory(t.Context()))(t).Used)
	require.True(t, s.Durable(t.Context()))

	node := redis.NewClient(&redis.Options{Addr: cluster.Nodes[1].Addr()})
	t.Cleanup(func() { _ = node.Close() })
	require.NoError(t, node.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
	_, err := s.CheckReadiness(t.Context())
	require.ErrorContains(t, err, cluster.Nodes[1].Addr()+" is not fit: maxmemory-policy",
		"one master may evict keys")

	require.NoError(t, cluster.Nodes[1].Kill())
	becomes(Readiness{Masters: 3, Unavailable: 1})
	require.Positive(t, must.Get(s.Memory(t.Context()))(t).Used)
}

// TestCheckReadiness_UserWithoutCONFIGSeesThePolicy uses the rights that the documentation names.
// Such a user may not read the settings of Redis, and INFO has them.
func TestCheckReadiness_UserWithoutCONFIGSeesThePolicy(t *testing.T) {
	server := servers.Redis(t, "maxmemory-policy volatile-lru", "appendonly no",
		"user programs on >secret ~* &* +@all -@dangerous +info")
	client := redis.NewClient(&redis.Options{
		Addr: server.Addr(), Username: "programs", Password: "secret",
	})
	defer client.Close()
	s := New(client, Options{})
	_, err := s.CheckReadiness(t.Context())
	require.ErrorContains(t, err, "maxmemory-policy must be noeviction")
	require.False(t, s.Durable(t.Context()))
}

// TestCheckReadiness_SingleAddressIsASellingServer checks that the address of a sentinel, or of one
// node of a cluster, makes no node ready: each answers PING, and the sales fail.
func TestCheckReadiness_SingleAddressIsASellingServer(t *testing.T) {
	cluster, _ := onCluster(t, 0)
	sentinel := servers.Sentinel(t, servers.Redis(t))
	for addr, problem := range map[string]string{
		cluster.Addrs()[0]: "a node of a Redis Cluster: list several in SECKILL_REDIS_ADDRS",
		sentinel.Addr():    "a sentinel: set SECKILL_REDIS_SENTINEL_MASTER",
	} {
		client := redis.NewClient(&redis.Options{Addr: addr})
		_, err := New(client, Options{}).CheckReadiness(t.Context())
		require.NoError(t, client.Close())
		unfit, ok := errors.AsType[*UnfitError](err)
		require.True(t, ok, "%v", err)
		require.Contains(t, unfit.Problem, problem)
	}
}

// TestCheckReadiness_SentinelsMasterIsNamed checks that the error of a sentinels' master has no
// word of the client in place of its host.
func TestCheckReadiness_SentinelsMasterIsNamed(t *testing.T) {
	sentinel := servers.Sentinel(t, servers.Redis(t, "maxmemory-policy allkeys-lru"))
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: servers.SentinelMaster, SentinelAddrs: []string{sentinel.Addr()},
	})
	defer client.Close()
	_, err := New(client, Options{}).CheckReadiness(t.Context())
	require.ErrorContains(t, err, "redis at the address that the sentinels report is not fit")
}

// TestCluster_PausedMasterHidesOnlyItsSales checks that sales and outboxes of other masters are
// read while one master does not answer.
func TestCluster_PausedMasterHidesOnlyItsSales(t *testing.T) {
	cluster, _ := onCluster(t, 0)
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: cluster.Addrs(), ContextTimeoutEnabled: true,
	})
	t.Cleanup(func() { _ = client.Close() })
	s, paused := fixture{New(client, Options{}), t}, cluster.Nodes[0]
	var goodsIDs, elsewhere []int64
	for id := range int64(20) {
		sale := onSale(10, 5)
		sale.GoodsID = id + 1
		s.load(sale)
		s.addEntry(sale.GoodsID)
		goodsIDs = append(goodsIDs, sale.GoodsID)
		slot := must.Get(cluster.SlotOf(t.Context(), keysOf(sale.GoodsID).sale()))(t)
		if must.Get(cluster.MasterOfSlot(t.Context(), slot))(t) != paused {
			elsewhere = append(elsewhere, sale.GoodsID)
		}
	}
	require.Equal(t, len(goodsIDs), len(s.Views(t.Context(), goodsIDs)))
	require.Less(t, len(elsewhere), len(goodsIDs))
	require.NoError(t, paused.Pause())
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), order.RedisDeadline)
		defer cancel()
		read := slices.Sorted(maps.Keys(s.Views(ctx, goodsIDs)))
		return slices.Equal(elsewhere, read)
	}, time.Minute, 20*time.Millisecond)
	found, err := s.WithEntries(t.Context(), goodsIDs)
	require.Error(t, err)
	require.Equal(t, elsewhere, found)
}
