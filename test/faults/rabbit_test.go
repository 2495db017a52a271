package faults

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/testenv"
	"flashsale.dev/seckill/test/rig"
)

func rabbitHarms() []harm {
	own := rig.Options{OwnRabbit: true}
	noLimit := rig.Options{OwnRabbit: true, Env: []string{"SECKILL_MAX_BACKLOG_AGE=0"}}
	slowly := 15 * time.Second // a broker takes seconds to come back
	return []harm{
		{name: "rabbit-killed", rig: own, over: slowly, before: settleRabbit, do: func(t *testing.T, s *scene) { s.withoutRabbit(t, 0) }},
		{name: "rabbit-stopped-no-limit", rig: noLimit, over: slowly, before: settleRabbit, do: func(t *testing.T, s *scene) {
			before := s.withoutRabbit(t, 15*time.Second)
			require.Greater(t, s.won.Load(), before, "a broker that is away stopped the sale")
		}},
		{name: "rabbit-stopped", rig: own, over: 40 * time.Second, before: settleRabbit, do: func(t *testing.T, s *scene) {
			s.withoutRabbit(t, 15*time.Second)
		}},
		{name: "rabbit-stopped-60s-no-limit", rig: noLimit, over: 2 * time.Minute, crowd: true, before: settleRabbit, do: func(t *testing.T, s *scene) {
			s.stopRabbit(t)
			before := s.won.Load()
			s.lasts(time.Minute)
			require.Greater(t, s.won.Load(), before, "a broker that is away stopped the sale")
			require.NoError(t, s.Rabbit.Restart(t.Context()))
		}},
		{name: "rabbit-stopped-60s", rig: own, over: 2 * time.Minute, crowd: true, before: settleRabbit, do: stopRabbitUnderLimit, after: comeAgain},
		{name: "rabbit-emptied", rig: own, over: slowly, do: func(t *testing.T, s *scene) {
			s.until(s.between(0.1, 0.7))
			require.NoError(t, s.Rabbit.RestartEmpty(t.Context()))
			s.MakeVHost(t)
		}},
		{name: "rabbit-memory-alarm", rig: own, over: slowly, do: func(t *testing.T, s *scene) {
			s.until(s.between(0.1, 0.5))
			ctl(t, s.Rabbit, "set_vm_memory_high_watermark", "absolute", "1MB")
			s.lasts(5 * time.Second)
			ctl(t, s.Rabbit, "set_vm_memory_high_watermark", "absolute", "1GB")
		}},
	}
}

// settleRabbit has RabbitMQ write its directory of quorum queues to disk. RabbitMQ 3.10 finds a queue again after a SIGKILL
// only where that has happened, which it leaves for some three seconds after a declaration: a fault of the broker
// and not the harm meant.
func settleRabbit(t *testing.T, s *scene) {
	t.Helper()
	for _, node := range s.rabbits() {
		ctl(t, node, "eval", "dets:sync(ra_directory_reverse).")
	}
}

// rabbits are all nodes of the broker.
func (s *scene) rabbits() []*testenv.RabbitServer {
	if s.Rabbits == nil {
		return []*testenv.RabbitServer{s.Rabbit}
	}
	return s.Rabbits.Nodes
}

// withoutRabbit kills the broker, leaves it dead for a while, starts it, and tells how many had won before.
func (s *scene) withoutRabbit(t *testing.T, dead time.Duration) (won int64) {
	t.Helper()
	s.until(s.between(0.1, 0.7))
	require.NoError(t, s.Rabbit.Kill())
	won = s.won.Load()
	s.lasts(dead)
	require.NoError(t, s.Rabbit.Restart(t.Context()))
	return won
}

// stopRabbit kills the broker early enough for the sale not to end before it is back.
func (s *scene) stopRabbit(t *testing.T) {
	t.Helper()
	s.until(s.between(0.05, 0.2))
	require.NoError(t, s.Rabbit.Kill())
}

// stopRabbitUnderLimit stops the broker for a minute: the sale must go on while the oldest promise that MySQL lacks is
// younger than SECKILL_MAX_BACKLOG_AGE, 10 s, and then promise nothing more. Of a cluster it stops one node, and then nothing
// grows old.
func stopRabbitUnderLimit(t *testing.T, s *scene) {
	t.Helper()
	s.stopRabbit(t)
	before := s.won.Load()
	s.lasts(8 * time.Second)
	young := s.won.Load()
	require.Greater(t, young, before, "the sale stopped before its backlog was old")
	s.lasts(6 * time.Second)
	old := s.won.Load()
	s.lasts(46 * time.Second)
	if s.Rabbits == nil {
		require.Equal(t, old, s.won.Load(), "units were promised on a backlog of more than 10 s")
	}
	require.NoError(t, s.Rabbit.Restart(t.Context()))
	t.Logf("%d promised before the broker stopped, %d in the next 8 s, %d in the 6 s after that", before, young-before, old-young)
}

// comeAgain wants buyers to have been told to; that each such answer said when is the checker's.
func comeAgain(t *testing.T, s *scene, r buyer.Report) {
	t.Helper()
	if s.Rabbits != nil {
		return // the others of a cluster did the work of the one that was away
	}
	require.Positive(t, r.Sum(func(told buyer.Told) int { return told.Busy }), "nobody was told to come again (503)")
}

func ctl(t *testing.T, node *testenv.RabbitServer, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := node.Ctl(ctx, args...)
	require.NoError(t, err)
}
