package faults

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
)

func programFaults() []fault {
	return []fault{
		{name: "none", inject: func(_ *testing.T, r *run) { r.untilPromised(0.5) }},
		{
			name: "api-killed", spread: 15 * time.Second,
			inject: func(t *testing.T, r *run) { killTenTimes(t, r, r.APIs) },
		},
		{
			name: "consumer-killed", spread: 12 * time.Second,
			inject: func(t *testing.T, r *run) { killTenTimes(t, r, r.Consumers) },
		},
		{name: "consumer-paused", inject: midway(func(t *testing.T, r *run) {
			// 20 s is longer than the broker's heartbeat timeout.
			pause(t, r.Consumers[r.rng.IntN(len(r.Consumers))], 20*time.Second)
		})},
		{name: "all-restarted", spread: 15 * time.Second, inject: restartAll},
	}
}

// killTenTimes kills and restarts one of the programs ten times, at random a different one.
func killTenTimes(t *testing.T, r *run, programs []*installation.Program) {
	for i := range 10 {
		r.untilPromised(float64(i+1)/12 + r.random(0, 0.08))
		one := r.rng.IntN(len(programs))
		kill(t, programs[one:one+1])
		start(t, programs[one:one+1])
	}
}

func kill(t *testing.T, programs []*installation.Program) {
	for _, p := range programs {
		require.NoError(t, p.Kill())
	}
}

func start(t *testing.T, programs []*installation.Program) {
	for _, p := range programs {
		p.Start(t)
	}
}

// restartAll stops every program gracefully, one after another, and starts it again.
func restartAll(t *testing.T, r *run) {
	for i, p := range slices.Concat(r.APIs, r.Consumers) {
		r.untilPromised(float64(i+1)/6 + r.random(0, 0.1))
		require.NoError(t, p.Stop(), "%s", p.Log())
		p.Start(t)
	}
}

// pausable is a process that SIGSTOP can suspend.
type pausable interface {
	Pause() error
	Resume() error
}

func pause(t *testing.T, p pausable, d time.Duration) {
	require.NoError(t, p.Pause())
	time.Sleep(d)
	require.NoError(t, p.Resume())
}
