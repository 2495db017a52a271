package faults

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/test/faults/check"
)

// replicaLag is how far the replica is behind its master.
const replicaLag = time.Second

// failoverFaults kill a Redis master whose replica lags. Sentinel promotes the replica, which lacks
// the master's last second. With SECKILL_REDIS_WAIT_REPLICAS=1 no order of that second was
// promised.
func failoverFaults() []fault {
	failover := func(name string, ownRabbit bool, allow check.Allowance) fault {
		f := fault{
			name:    name,
			options: installation.Options{Failover: true, OwnRabbit: ownRabbit},
			// A reservation that waits for the replica takes over a second.
			spread: 20 * time.Second, concurrent: ownRabbit, allow: allow, prepare: delayReplica,
			inject: killLaggingMaster(0.6), afterRecovery: restartOldMaster,
		}
		if ownRabbit {
			f.prepare, f.inject = flushAndDelay, killMasterAndRabbit
		}
		return f
	}
	broken := check.Allowance{BrokenPromises: true}
	back := failover("redis-failover-and-back", false, broken)
	back.spread, back.afterRecovery = 30*time.Second, failBack
	wait := failover("redis-failover-wait-1", false, check.Allowance{})
	// Half a minute after its start Sentinel has the replica follow past the slow wire.
	wait.inject = killLaggingMaster(0.3)
	waitAway := failover("redis-failover-rabbit-away-wait-1", true, check.Allowance{})
	for _, f := range []*fault{&wait, &waitAway} {
		f.options.Env = []string{
			"SECKILL_REDIS_WAIT_REPLICAS=1", "SECKILL_REDIS_WAIT_TIMEOUT=1500ms",
		}
	}
	return []fault{
		failover("redis-failover-replica-behind", false, broken), wait, back,
		failover("redis-failover-rabbit-away", true, broken), waitAway, noticedLate(),
	}
}

func delayReplica(_ *testing.T, r *run) { r.Wires["replica-redis"].Lag(replicaLag) }

func flushAndDelay(t *testing.T, r *run) {
	flushRabbit(t, r)
	delayReplica(t, r)
}

// killLaggingMaster kills the master once a random share of the units is promised, from 0.1 to
// latest.
func killLaggingMaster(latest float64) func(t *testing.T, r *run) {
	return func(t *testing.T, r *run) {
		r.untilPromised(r.random(0.1, latest))
		r.promoteReplica(t)
	}
}

// promoteReplica kills the master while its replica lags, and waits for the promotion.
func (r *run) promoteReplica(t *testing.T) {
	bytes, port := r.ReplicationLag(t)
	link := r.Wires["replica-redis"]
	_, wire, err := net.SplitHostPort(link.Addr)
	require.NoError(t, err)
	require.Equal(t, wire, port, "the replica does not follow over the slow wire")
	require.Positive(t, bytes, "the replica does not lag")
	link.Cut() // bytes on the wire must not reach the replica of a dead master
	require.NoError(t, r.Redis.Kill())
	link.Drop()
	link.Restore()
	r.AwaitPromotion(t, r.Replica)
	t.Logf("the replica was %d bytes behind when it was promoted", bytes)
}

// killMasterAndRabbit kills the broker, then the master. No other server has the promises of the
// master's last second. These are two failures at once.
func killMasterAndRabbit(t *testing.T, r *run) {
	r.untilPromised(r.random(0.05, 0.2))
	require.NoError(t, r.Rabbit.Kill())
	promised := r.promised.Load()
	time.Sleep(r.randomSeconds(2, 4))
	require.Greater(t, r.promised.Load(), promised, "a broker that is down stopped the sale")
	r.promoteReplica(t)
	require.NoError(t, r.Rabbit.Restart(t.Context()))
}

// restartOldMaster starts the dead master with the data on its disk; it must become a replica.
func restartOldMaster(t *testing.T, r *run) {
	require.NoError(t, r.Redis.Restart(t.Context()))
	r.AwaitReplica(t, r.Redis)
}

// failBack promotes the old master again while the new one still takes reservations.
func failBack(t *testing.T, r *run) {
	restartOldMaster(t, r)
	r.FailOver(t, r.Redis)
	r.awaitRecovery(t)
}
