package faults

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/test/faults/check"
)

// lag is how far the replica is behind its master.
const lag = time.Second

// failoverHarms have Sentinel put a replica in the place of a Redis that dies; what the master took in its last second the
// replica does not have. With a WAIT for one replica nothing of that was promised.
func failoverHarms() []harm {
	watched := func(own bool, settings ...string) installation.Options {
		return installation.Options{Failover: true, OwnRabbit: own, Env: settings}
	}
	wait := []string{"SECKILL_REDIS_WAIT_REPLICAS=1", "SECKILL_REDIS_WAIT_TIMEOUT=1500ms"}
	kept, broken := check.Expect{}, check.Expect{MayBreak: true}
	long := 20 * time.Second // a reservation takes a second and more where it waits for the replica
	return []harm{
		{name: "redis-failover-replica-behind", rig: watched(false), over: long, expect: broken, before: fallBehind, do: loseMaster, then: comeBack},
		{name: "redis-failover-wait-1", rig: watched(false, wait...), over: long, expect: kept, before: fallBehind, do: loseMaster, then: comeBack},
		{name: "redis-failover-and-back", rig: watched(false), over: 30 * time.Second, expect: broken, before: fallBehind, do: loseMaster, then: goBack},
		{
			name: "redis-failover-rabbit-away", rig: watched(true), over: long, crowd: true, expect: broken,
			before: fallBehindBoth, do: loseBoth, then: comeBack,
		},
		{
			name: "redis-failover-rabbit-away-wait-1", rig: watched(true, wait...), over: long, crowd: true, expect: kept,
			before: fallBehindBoth, do: loseBoth, then: comeBack,
		},
	}
}

func fallBehind(_ *testing.T, s *scene) { s.Wires["replica-redis"].Lag(lag) }

func fallBehindBoth(t *testing.T, s *scene) {
	settleRabbit(t, s)
	fallBehind(t, s)
}

func loseMaster(t *testing.T, s *scene) {
	t.Helper()
	s.until(s.between(0.1, 0.6))
	s.promoteReplica(t)
}

// promoteReplica kills the master while its replica is behind, and waits for the promotion.
func (s *scene) promoteReplica(t *testing.T) {
	t.Helper()
	bytes, port := s.Behind(t)
	_, wire, err := net.SplitHostPort(s.Wires["replica-redis"].Addr)
	require.NoError(t, err)
	require.Equal(t, wire, port, "the replica does not follow over the slow wire")
	require.Positive(t, bytes, "the replica is not behind")
	link := s.Wires["replica-redis"]
	link.Cut() // what is under way must not reach the replica when its master is dead
	require.NoError(t, s.Redis.Kill())
	link.Drop()
	link.Mend()
	s.Promoted(t, s.Replica)
	t.Logf("the replica was %d bytes behind when it was promoted", bytes)
}

// loseBoth has the promises of the master's last second be nowhere but in it: the broker is away. That is two faults.
func loseBoth(t *testing.T, s *scene) {
	t.Helper()
	s.until(s.between(0.05, 0.2))
	require.NoError(t, s.Rabbit.Kill())
	won := s.won.Load()
	s.lasts(time.Duration(s.between(2, 4) * float64(time.Second)))
	require.Greater(t, s.won.Load(), won, "a broker that is away stopped the sale")
	s.promoteReplica(t)
	require.NoError(t, s.Rabbit.Restart(t.Context()))
}

// comeBack starts the dead master again, with what it had on its disk: it must become a replica.
func comeBack(t *testing.T, s *scene) {
	t.Helper()
	require.NoError(t, s.Redis.Restart(t.Context()))
	s.Follows(t, s.Redis)
}

// goBack has the old master, back as a replica, be promoted again while the other still takes reservations.
func goBack(t *testing.T, s *scene) {
	t.Helper()
	comeBack(t, s)
	s.FailOver(t, s.Redis)
	s.recovers(t)
}
