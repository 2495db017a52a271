package faults

import (
	"slices"
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
	killed := fault{
		name: "redis-cluster-master-killed", spread: 15 * time.Second, inject: killMaster,
		options: installation.Options{Topology: installation.RedisCluster},
		allow:   check.Allowance{BrokenPromises: true},
	}
	cutOff, moved := killed, killed
	cutOff.name, cutOff.inject = "redis-cluster-cut-off", cutMasterOff
	cutOff.options.BusWires = true
	moved.name, moved.inject = "redis-cluster-slots-moved", moveSlotBackAndForth
	moved.allow = check.Allowance{}
	waiting := func(f fault) fault {
		f.name, f.allow = f.name+"-wait-1", check.Allowance{}
		f.options.Env = []string{"SECKILL_REDIS_WAIT_REPLICAS=1"}
		return f
	}
	killedWaiting := waiting(killed)
	killedWaiting.afterRecovery = restartNodes
	return []fault{killed, killedWaiting, moved, waiting(moved), cutOff}
}

// killMaster kills the sale's master for good: the cluster promotes its replica.
func killMaster(t *testing.T, r *run) {
	r.untilPromised(r.random(0.1, 0.6))
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
		r.untilPromised(float64(i)/6 + r.random(0.05, 0.15))
		to := first
		if r.master(t) == first {
			to = r.otherMaster(t, first)
		}
		r.moveSlot(t, to, i%2 == 0)
	}
}

func (r *run) otherMaster(t *testing.T, than *servers.RedisServer) *servers.RedisServer {
	masters := r.masters(t)
	i := slices.IndexFunc(masters, func(m *servers.RedisServer) bool { return m != than })
	require.GreaterOrEqual(t, i, 0, "there is one master only")
	return masters[i]
}

// moveSlot moves the sale's slot to a master. If pauses is set, two of its keys move first, and the
// others a second later.
func (r *run) moveSlot(t *testing.T, to *servers.RedisServer, pauses bool) {
	slot := must.Get(r.Cluster.SlotOf(t.Context(), installation.SaleKey(r.goods)))(t)
	move := must.Get(r.Cluster.BeginMove(t.Context(), slot, to))(t)
	if pauses {
		time.Sleep(500 * time.Millisecond)
		require.Equal(t, 2, must.Get(move.Keys(t.Context(), 2))(t))
		time.Sleep(time.Second)
	}
	require.NoError(t, move.Finish(t.Context()))
}

// cutMasterOff cuts the sale's master off from the other nodes for longer than the node timeout.
// The programs still reach every node. The master takes reservations that its replica never gets.
func cutMasterOff(t *testing.T, r *run) {
	r.untilPromised(r.random(0.1, 0.5))
	old, promised := r.master(t), r.promised.Load()
	require.NoError(t, r.Cluster.CutOff(t.Context(), old))
	time.Sleep(servers.ClusterNodeTimeout / 2)
	t.Logf("%d units were promised by a master cut off", r.promised.Load()-promised)
	require.Eventually(t, func() bool { return r.master(t) != old },
		patience, 50*time.Millisecond, "no replica was promoted")
	r.awaitRecovery(t)
	require.NoError(t, r.Cluster.Rejoin(t.Context(), old))
	require.NoError(t, r.Cluster.Settled(t.Context()))
}
