package faults

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/servers"
)

// rabbitNodeHarms happen to nodes of a RabbitMQ cluster; Rabbit is the one that leads the sale's queue.
func rabbitNodeHarms() []harm {
	own := installation.Options{OwnRabbit: true, Land: installation.Land{RabbitCluster: true}}
	return []harm{
		{name: "rabbit-node-killed", rig: own, over: 25 * time.Second, before: settleRabbit, do: killNode},
		{name: "rabbit-node-emptied", rig: own, over: 25 * time.Second, do: func(t *testing.T, s *scene) {
			s.until(s.between(0.1, 0.5))
			s.whileSelling(t, func() { require.NoError(t, s.Rabbit.RestartEmpty(t.Context())) })
		}},
		{name: "rabbit-node-paused", rig: own, over: 30 * time.Second, do: func(t *testing.T, s *scene) {
			s.until(s.between(0.1, 0.5))
			s.whileSelling(t, func() { pause(t, s, s.Rabbit, 20*time.Second) })
			s.whole(t)
		}},
		{name: "rabbit-node-cut-off", rig: own, over: 30 * time.Second, do: func(t *testing.T, s *scene) {
			s.until(s.between(0.1, 0.5))
			s.whileSelling(t, func() {
				s.Rabbits.CutOff(s.Rabbit)
				s.lasts(15 * time.Second) // three times as long as the nodes believe in each other
			})
			s.Rabbits.Heal(s.Rabbit)
			s.whole(t)
		}},
		{name: "rabbit-leader-moved", rig: own, over: 15 * time.Second, do: moveLeaders},
		{name: "rabbit-majority-killed", rig: own, over: 30 * time.Second, before: settleRabbit, do: killMajority},
	}
}

// killNode kills the node that leads, leaves it dead for 10 s, and starts it again.
func killNode(t *testing.T, s *scene) {
	t.Helper()
	s.until(s.between(0.1, 0.5))
	require.NoError(t, s.Rabbit.Kill())
	s.whileSelling(t, func() { s.lasts(10 * time.Second) })
	require.NoError(t, s.Rabbit.Restart(t.Context()))
	s.whole(t)
}

// whileSelling wants the sale to go on during a harm: the other nodes are enough.
func (s *scene) whileSelling(t *testing.T, harm func()) {
	t.Helper()
	before := s.won.Load()
	harm()
	if before < s.units*9/10 {
		require.Greater(t, s.won.Load(), before, "one node of three stopped the sale")
	}
}

func (s *scene) whole(t *testing.T) {
	t.Helper()
	require.NoError(t, s.Rabbits.AwaitWhole(t.Context()))
}

// moveLeaders has the sale's queue be led by one node after another, and by the first again.
func moveLeaders(t *testing.T, s *scene) {
	t.Helper()
	first := s.Rabbit
	for i, to := range append(s.Rabbits.Others(first), first) {
		s.until(float64(i)/4 + s.between(0.05, 0.25))
		s.MoveRabbit(t, s.goods, to)
	}
}

// killMajority kills two nodes: the third alone must confirm nothing. They are started at once, for each waits for the other.
func killMajority(t *testing.T, s *scene) {
	t.Helper()
	s.until(s.between(0.1, 0.5))
	dead := append([]*servers.RabbitServer{s.Rabbit}, s.Rabbits.Others(s.Rabbit)[0])
	for _, node := range dead {
		require.NoError(t, node.Kill())
	}
	s.lasts(8 * time.Second)
	var starting sync.WaitGroup
	failed := make([]error, len(dead))
	for i, node := range dead {
		starting.Go(func() { failed[i] = node.Restart(t.Context()) })
	}
	starting.Wait()
	for _, err := range failed {
		require.NoError(t, err)
	}
	s.whole(t)
}
