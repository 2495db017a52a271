package chaos

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
		{name: "rabbit-emptied", rig: own, over: slowly, do: func(t *testing.T, s *scene) {
			s.until(s.between(0.1, 0.7))
			require.NoError(t, s.Rabbit.RestartEmpty(t.Context()))
			s.MakeVHost(t)
		}},
		{name: "rabbit-memory-alarm", rig: own, over: slowly, do: func(t *testing.T, s *scene) {
			s.until(s.between(0.1, 0.5))
			s.ctl(t, "set_vm_memory_high_watermark", "absolute", "1MB")
			s.lasts(5 * time.Second)
			s.ctl(t, "set_vm_memory_high_watermark", "absolute", "1GB")
		}},
	}
}

// settleRabbit has RabbitMQ write its directory of quorum queues to disk. RabbitMQ 3.10 finds a queue again after a SIGKILL
// only where that has happened, which it leaves for some three seconds after a declaration: a fault of the broker
// and not the harm meant.
func settleRabbit(t *testing.T, s *scene) { s.ctl(t, "eval", "dets:sync(ra_directory_reverse).") }

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

func (s *scene) ctl(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := s.Rabbit.Ctl(ctx, args...)
	require.NoError(t, err)
}
