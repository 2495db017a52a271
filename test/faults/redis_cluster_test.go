package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/test/faults/check"
)

// clusterHarms are those that only a Redis Cluster knows: its replicas are promoted by the other masters, and its slots move.
func clusterHarms() []harm {
	cluster := func(busWires bool, env ...string) installation.Options {
		return installation.Options{Land: installation.Land{RedisCluster: true}, BusWires: busWires, Env: env}
	}
	broken, long := check.Expect{MayBreak: true}, 15*time.Second
	wait := []string{"SECKILL_REDIS_WAIT_REPLICAS=1"}
	return []harm{
		{name: "redis-cluster-master-killed", rig: cluster(false), over: long, expect: broken, do: loseKeeper},
		{name: "redis-cluster-master-killed-wait-1", rig: cluster(false, wait...), over: long, do: loseKeeper, then: reviveNodes},
		{name: "redis-cluster-slots-moved", rig: cluster(false), over: long, do: moveToAndFro},
		{name: "redis-cluster-slots-moved-wait-1", rig: cluster(false, wait...), over: long, do: moveToAndFro},
		{name: "redis-cluster-cut-off", rig: cluster(true), over: long, expect: broken, do: cutOff},
	}
}

// loseKeeper kills the master that keeps the sale, for good: its replica takes its place.
func loseKeeper(t *testing.T, s *scene) {
	t.Helper()
	s.until(s.between(0.1, 0.6))
	dead := s.keeper(t)
	require.NoError(t, dead.Kill())
	require.NotSame(t, dead, s.keeper(t), "a dead server is master")
}

// reviveNodes starts the dead again, as replicas of those who took their places: until then no promise that waits for a replica is made.
func reviveNodes(t *testing.T, s *scene) {
	t.Helper()
	for _, node := range s.Cluster.Nodes {
		if !node.Running() {
			require.NoError(t, node.Restart(t.Context()))
		}
	}
	require.NoError(t, s.Cluster.Settled(t.Context()))
}

// moveToAndFro has the sale's slot go from master to master and back, twice resting where half of its keys have gone.
func moveToAndFro(t *testing.T, s *scene) {
	t.Helper()
	home := s.keeper(t)
	for i := range 4 {
		s.until(float64(i)/6 + s.between(0.05, 0.15))
		to := home
		if s.keeper(t) == home {
			to = s.another(t, home)
		}
		s.moveSlot(t, to, i%2 == 0)
	}
}

// another is a master other than one.
func (s *scene) another(t *testing.T, than *servers.RedisServer) *servers.RedisServer {
	t.Helper()
	for _, master := range s.masters(t) {
		if master != than {
			return master
		}
	}
	require.Fail(t, "there is one master only")
	return nil
}

// moveSlot brings the sale's slot to a master, key by key where it rests on the way.
func (s *scene) moveSlot(t *testing.T, to *servers.RedisServer, rests bool) {
	t.Helper()
	slot, err := s.Cluster.SlotOf(t.Context(), installation.SaleKey(s.goods))
	require.NoError(t, err)
	move, err := s.Cluster.BeginMove(t.Context(), slot, to)
	require.NoError(t, err)
	batch := 1000
	if rests {
		s.lasts(500 * time.Millisecond)
		_, err = move.Keys(t.Context(), 2)
		require.NoError(t, err)
		s.lasts(time.Second)
	}
	for moved := 1; moved > 0; {
		moved, err = move.Keys(t.Context(), batch)
		require.NoError(t, err)
	}
	require.NoError(t, move.Finish(t.Context()))
}

// cutOff takes the master that keeps the sale away from all its peers, for longer than they believe in it, while the programs
// reach every node still; what it takes until it notices, its replica never has.
func cutOff(t *testing.T, s *scene) {
	t.Helper()
	s.until(s.between(0.1, 0.5))
	alone, won := s.keeper(t), s.won.Load()
	require.NoError(t, s.Cluster.CutOff(t.Context(), alone))
	s.lasts(servers.ClusterNodeTimeout / 2)
	t.Logf("%d units were promised by a master cut off", s.won.Load()-won)
	require.Eventually(t, func() bool { return s.keeper(t) != alone }, patience, 50*time.Millisecond, "nobody took its place")
	s.recovers(t)
	require.NoError(t, s.Cluster.Join(t.Context(), alone))
	require.NoError(t, s.Cluster.Settled(t.Context()))
}
