package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/test/faults/check"
)

// clusterFaults need a Redis Cluster: the other masters promote a replica, and slots move.
func clusterFaults() []fault {
	cluster := func(busWires bool, env ...string) installation.Options {
		return installation.Options{
			Topology: installation.RedisCluster, BusWires: busWires, Env: env,
		}
	}
	broken, spread := check.Allowance{BrokenPromises: true}, 15*time.Second
	wait := []string{"SECKILL_REDIS_WAIT_REPLICAS=1"}
	return []fault{
		{
			name: "redis-cluster-master-killed", options: cluster(false), spread: spread,
			allow: broken, inject: killMaster,
		},
		{
			name: "redis-cluster-master-killed-wait-1", options: cluster(false, wait...),
			spread: spread, inject: killMaster, afterRecovery: restartNodes,
		},
		{
			name: "redis-cluster-slots-moved", options: cluster(false), spread: spread,
			inject: moveSlotBackAndForth,
		},
		{
			name: "redis-cluster-slots-moved-wait-1", options: cluster(false, wait...),
			spread: spread, inject: moveSlotBackAndForth,
		},
		{
			name: "redis-cluster-cut-off", options: cluster(true), spread: spread,
			allow: broken, inject: cutMasterOff,
		},
	}
}

// killMaster kills the sale's master for good: the cluster promotes its replica.
func killMaster(t *testing.T, r *run) {
	r.untilSold(r.random(0.1, 0.6))
	dead := r.master(t)
	require.NoError(t, dead.Kill())
	require.NotSame(t, dead, r.master(t), "a dead server is master")
}

// restartNodes starts the dead nodes again, as replicas. A promise that waits for a replica is
// possible only after that.
func restartNodes(t *testing.T, r *run) {
	for _, node := range r.Cluster.Nodes {
		if !node.Running() {
			require.NoError(t, node.Restart(t.Context()))
		}
	}
	require.NoError(t, r.Cluster.Settled(t.Context()))
}

// moveSlotBackAndForth moves the sale's slot to another master and back, twice, and pauses every
// second move halfway.
func moveSlotBackAndForth(t *testing.T, r *run) {
	first := r.master(t)
	for i := range 4 {
		r.untilSold(float64(i)/6 + r.random(0.05, 0.15))
		to := first
		if r.master(t) == first {
			to = r.otherMaster(t, first)
		}
		r.moveSlot(t, to, i%2 == 0)
	}
}

func (r *run) otherMaster(t *testing.T, than *servers.RedisServer) *servers.RedisServer {
	for _, master := range r.masters(t) {
		if master != than {
			return master
		}
	}
	require.Fail(t, "there is one master only")
	return nil
}

// moveSlot moves the sale's slot to a master. With a pause the slot stays half moved for a second.
func (r *run) moveSlot(t *testing.T, to *servers.RedisServer, pauses bool) {
	slot := must.Get(r.Cluster.SlotOf(t.Context(), installation.SaleKey(r.goods)))(t)
	move := must.Get(r.Cluster.BeginMove(t.Context(), slot, to))(t)
	if pauses {
		time.Sleep(500 * time.Millisecond)
		_, err := move.Keys(t.Context(), 2)
		require.NoError(t, err)
		time.Sleep(time.Second)
	}
	for moved := 1; moved > 0; {
		moved = must.Get(move.Keys(t.Context(), 1000))(t)
	}
	require.NoError(t, move.Finish(t.Context()))
}

// cutMasterOff cuts the sale's master off from the other nodes for longer than the node timeout.
// The programs still reach every node. The master takes reservations that its replica never gets.
func cutMasterOff(t *testing.T, r *run) {
	r.untilSold(r.random(0.1, 0.5))
	old, promised := r.master(t), r.promised.Load()
	require.NoError(t, r.Cluster.CutOff(t.Context(), old))
	time.Sleep(servers.ClusterNodeTimeout / 2)
	t.Logf("%d units were promised by a master cut off", r.promised.Load()-promised)
	require.Eventually(t, func() bool { return r.master(t) != old },
		patience, 50*time.Millisecond, "no replica was promoted")
	r.awaitRecovery(t)
	require.NoError(t, r.Cluster.Join(t.Context(), old))
	require.NoError(t, r.Cluster.Settled(t.Context()))
}
