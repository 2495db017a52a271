package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/servers"
)

// rabbitNodeFaults hit nodes of a RabbitMQ cluster; run.Rabbit leads the sale's queue.
func rabbitNodeFaults() []fault {
	node := func(name string, spread time.Duration, inject func(*testing.T, *run)) fault {
		return fault{
			name: "rabbit-" + name, spread: spread, inject: inject,
			options: installation.Options{OwnRabbit: true, Topology: installation.RabbitCluster},
		}
	}
	const medium, long = 25 * time.Second, 30 * time.Second
	killed := node("node-killed", medium, killNode)
	majority := node("majority-killed", long, killMajority)
	killed.prepare, majority.prepare = flushRabbit, flushRabbit
	return []fault{
		killed, node("node-emptied", medium, emptyNode), node("node-paused", long, pauseNode),
		node("node-cut-off", long, cutNodeOff), node("leader-moved", 15*time.Second, moveLeaders),
		majority,
	}
}

// killNode kills the leader and restarts it after 10 s.
func killNode(t *testing.T, r *run) {
	r.untilPromised(r.random(0.1, 0.5))
	require.NoError(t, r.Rabbit.Kill())
	r.requireSales(t, func() { time.Sleep(10 * time.Second) })
	require.NoError(t, r.Rabbit.Restart(t.Context()))
	r.awaitWholeCluster(t)
}

func emptyNode(t *testing.T, r *run) {
	r.untilPromised(r.random(0.1, 0.5))
	r.requireSales(t, func() { require.NoError(t, r.Rabbit.RestartEmpty(t.Context())) })
}

// pauseNode suspends the leader for 20 s, then restarts it as an operator would: RabbitMQ 3.10 may
// not rejoin by itself after such a sleep.
func pauseNode(t *testing.T, r *run) {
	r.untilPromised(r.random(0.1, 0.5))
	r.requireSales(t, func() { pause(t, r.Rabbit, 20*time.Second) })
	require.NoError(t, r.Rabbit.Kill())
	require.NoError(t, r.Rabbit.Restart(t.Context()))
	r.awaitWholeCluster(t)
}

// cutNodeOff cuts the leader off for 15 s, three times the nodes' timeout.
func cutNodeOff(t *testing.T, r *run) {
	r.untilPromised(r.random(0.1, 0.5))
	r.requireSales(t, func() {
		r.Rabbits.CutOff(r.Rabbit)
		time.Sleep(15 * time.Second)
	})
	r.Rabbits.Heal(r.Rabbit)
	r.awaitWholeCluster(t)
}

// requireSales requires further promises while one node of three fails.
func (r *run) requireSales(t *testing.T, failure func()) {
	t.Helper()
	before := r.promised.Load()
	failure()
	if before < r.units*9/10 {
		require.Greater(t, r.promised.Load(), before, "one node of three stopped the sale")
	}
}

func (r *run) awaitWholeCluster(t *testing.T) {
	t.Helper()
	require.NoError(t, r.Rabbits.AwaitWhole(t.Context()))
}

// moveLeaders moves the leadership of the sale's queue to each other node, and back.
func moveLeaders(t *testing.T, r *run) {
	first := r.Rabbit
	for i, to := range append(r.Rabbits.Others(first), first) {
		r.untilPromised(float64(i)/4 + r.random(0.05, 0.25))
		r.MoveQueueLeader(t, r.goods, to)
	}
}

// killMajority kills two nodes for 8 s. The third cannot confirm a message alone. Both restart at
// the same time, because each waits for the other.
func killMajority(t *testing.T, r *run) {
	r.untilPromised(r.random(0.1, 0.5))
	dead := []*servers.RabbitServer{r.Rabbit, r.Rabbits.Others(r.Rabbit)[0]}
	for _, node := range dead {
		require.NoError(t, node.Kill())
	}
	time.Sleep(8 * time.Second)
	var restarts errgroup.Group
	for _, node := range dead {
		restarts.Go(func() error { return node.Restart(t.Context()) })
	}
	require.NoError(t, restarts.Wait())
	r.awaitWholeCluster(t)
}
