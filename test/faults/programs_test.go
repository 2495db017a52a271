package faults

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
)

// harms lists all of them, in the order of the table in reports/faults.md.
func harms() []harm {
	return slices.Concat(programHarms(), releaseHarms(), clockHarms(), redisHarms(), failoverHarms(), clusterHarms(), manySalesHarms(), rabbitHarms(), rabbitNodeHarms(), mysqlHarms(), groupHarms(), messageHarms(), wireHarms(), momentHarms())
}

// notOn tells why a harm cannot be done where servers are several; "" where it can.
func (h harm) notOn(land installation.Land) string {
	if land.RedisCluster && h.rig.Failover {
		return "a cluster promotes replicas without Sentinels; the harms redis-cluster-… are its own"
	}
	return ""
}

func programHarms() []harm {
	return []harm{
		{name: "none", do: func(_ *testing.T, s *scene) { s.until(0.5) }},
		{name: "api-killed", over: 15 * time.Second, do: func(t *testing.T, s *scene) { killTenTimes(t, s, s.APIs) }},
		{name: "consumer-killed", over: 12 * time.Second, do: func(t *testing.T, s *scene) { killTenTimes(t, s, s.Consumers) }},
		{name: "consumer-paused", do: func(t *testing.T, s *scene) {
			s.until(s.between(0.1, 0.7))
			pause(t, s, s.Consumers[s.rng.IntN(len(s.Consumers))], 20*time.Second) // longer than the broker believes in it
		}},
		{name: "all-restarted", over: 15 * time.Second, do: restartAll},
	}
}

// killTenTimes kills one program or another ten times, and starts it again.
func killTenTimes(t *testing.T, s *scene, programs []*installation.Program) {
	t.Helper()
	for i := range 10 {
		s.until(float64(i+1)/12 + s.between(0, 0.08))
		p := programs[s.rng.IntN(len(programs))]
		require.NoError(t, p.Kill())
		p.Start(t)
	}
}

// restartAll has every program end as an operator would, one after another, and starts it again.
func restartAll(t *testing.T, s *scene) {
	t.Helper()
	for i, p := range slices.Concat(s.APIs, s.Consumers) {
		s.until(float64(i+1)/6 + s.between(0, 0.1))
		require.NoError(t, p.Stop(), "%s", p.Log())
		p.Start(t)
	}
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
