package chaos

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/test/rig"
)

// harms lists all of them, in the order of the table in docs/reliability.md.
func harms() []harm {
	return []harm{
		{name: "none", do: func(_ *testing.T, s *scene) { s.until(0.5) }},
		{name: "api-killed", over: 15 * time.Second, do: killAPIs},
		{name: "consumer-killed", over: 12 * time.Second, do: killConsumers},
		{name: "redis-killed", do: func(t *testing.T, s *scene) {
			s.until(s.between(0.1, 0.7))
			require.NoError(t, s.Redis.Kill())
			require.NoError(t, s.Redis.Restart(t.Context()))
		}},
		{name: "redis-emptied", do: func(t *testing.T, s *scene) {
			s.until(s.between(0.1, 0.7))
			require.NoError(t, s.Redis.RestartEmpty(t.Context()))
		}},
		{name: "redis-flushall", do: func(t *testing.T, s *scene) {
			s.until(s.between(0.1, 0.7))
			require.NoError(t, s.redis.FlushAll(t.Context()).Err())
		}},
		{name: "redis-paused", do: func(t *testing.T, s *scene) {
			s.until(s.between(0.1, 0.7))
			pause(t, s, s.Redis, 5*time.Second)
		}},
		{name: "rabbit-killed", do: func(t *testing.T, s *scene) {
			s.flushRabbit(t)
			s.until(s.between(0.1, 0.7))
			require.NoError(t, s.Rabbit.Kill())
			require.NoError(t, s.Rabbit.Restart(t.Context()))
		}},
	}
}

// killAPIs kills one API or the other ten times.
func killAPIs(t *testing.T, s *scene) {
	for i := range 10 {
		s.until(float64(i+1)/12 + s.between(0, 0.08))
		again(t, s.APIs[s.rng.IntN(len(s.APIs))])
	}
}

// killConsumers kills one consumer or the other ten times: the active one of a shard sooner or later.
func killConsumers(t *testing.T, s *scene) {
	for i := range 10 {
		s.until(float64(i+1)/12 + s.between(0, 0.08))
		again(t, s.Consumers[s.rng.IntN(len(s.Consumers))])
	}
}

// again kills a program and starts it again.
func again(t *testing.T, p *rig.Program) {
	t.Helper()
	require.NoError(t, p.Kill())
	p.Start(t)
}

// pausable is a process that can be stopped in its tracks.
type pausable interface {
	Pause() error
	Resume() error
}

func pause(t *testing.T, s *scene, p pausable, d time.Duration) {
	t.Helper()
	require.NoError(t, p.Pause())
	s.lasts(d)
	require.NoError(t, p.Resume())
}

// flushRabbit has RabbitMQ 3.10 write its directory of quorum queues to disk: one that was declared less than some three
// seconds before a SIGKILL is otherwise not found again, which is a fault of the broker and not the harm meant.
func (s *scene) flushRabbit(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err := s.Rabbit.Ctl(ctx, "eval", "dets:sync(ra_directory_reverse).")
	require.NoError(t, err)
}
