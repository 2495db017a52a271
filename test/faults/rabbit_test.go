package faults

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/buyers"
	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/servers"
)

func rabbitFaults() []fault {
	own := installation.Options{OwnRabbit: true}
	limit := installation.Options{OwnRabbit: true, Env: []string{"SECKILL_MAX_BACKLOG_AGE=10s"}}
	spread := 15 * time.Second // a broker takes seconds to restart
	return []fault{
		{
			name: "rabbit-killed", options: own, spread: spread, prepare: flushRabbit,
			inject: stopRabbit(0),
		},
		{
			name: "rabbit-stopped-no-limit", options: own, spread: spread, prepare: flushRabbit,
			inject: sellWithoutRabbit(0.7, 15*time.Second),
		},
		{
			name: "rabbit-stopped", options: limit, spread: 40 * time.Second, prepare: flushRabbit,
			inject: stopRabbit(15 * time.Second),
		},
		{
			name: "rabbit-stopped-60s-no-limit", options: own, spread: 2 * time.Minute,
			concurrent: true, prepare: flushRabbit, inject: sellWithoutRabbit(0.2, time.Minute),
		},
		{
			name: "rabbit-stopped-60s", options: limit, spread: 2 * time.Minute, concurrent: true,
			prepare: flushRabbit, inject: exceedBacklogAge, checkReport: requireBusyAnswers,
		},
		{name: "rabbit-emptied", options: own, spread: spread, inject: func(t *testing.T, r *run) {
			r.untilPromised(r.random(0.1, 0.7))
			require.NoError(t, r.Rabbit.RestartEmpty(t.Context()))
			r.RecreateVHost(t)
		}},
		{name: "rabbit-memory-alarm", options: own, spread: spread, inject: raiseMemoryAlarm},
	}
}

// flushRabbit makes RabbitMQ write its directory of quorum queues to disk. RabbitMQ 3.10 does so
// some three seconds after a declaration, and loses a queue when SIGKILL comes first. The faults do
// not test that defect of the broker.
func flushRabbit(t *testing.T, r *run) {
	nodes := []*servers.RabbitServer{r.Rabbit}
	if r.Rabbits != nil {
		nodes = r.Rabbits.Nodes
	}
	for _, node := range nodes {
		ctl(t, node, "eval", "dets:sync(ra_directory_reverse).")
	}
}

// stopRabbit kills the broker midway, and restarts it after down.
func stopRabbit(down time.Duration) func(*testing.T, *run) {
	return midway(func(t *testing.T, r *run) {
		require.NoError(t, r.Rabbit.Kill())
		time.Sleep(down)
		require.NoError(t, r.Rabbit.Restart(t.Context()))
	})
}

// sellWithoutRabbit kills the broker once a random share of the units is promised, from 0.05 to
// latest, and restarts it after down. It requires further promises in between.
func sellWithoutRabbit(latest float64, down time.Duration) func(*testing.T, *run) {
	return func(t *testing.T, r *run) {
		r.untilPromised(r.random(0.05, latest))
		require.NoError(t, r.Rabbit.Kill())
		before := r.promised.Load()
		time.Sleep(down)
		require.Greater(t, r.promised.Load(), before, "a broker that is down stopped the sale")
		require.NoError(t, r.Rabbit.Restart(t.Context()))
	}
}

// exceedBacklogAge stops the broker for a minute. The sale must continue until the oldest promise
// that MySQL lacks is as old as SECKILL_MAX_BACKLOG_AGE, 10 s. After that the sale must stop. In a
// cluster it stops one node, and no promise grows old.
func exceedBacklogAge(t *testing.T, r *run) {
	r.untilPromised(r.random(0.05, 0.2))
	require.NoError(t, r.Rabbit.Kill())
	before := r.promised.Load()
	time.Sleep(8 * time.Second)
	young := r.promised.Load()
	require.Greater(t, young, before, "the sale stopped before its backlog was old")
	time.Sleep(6 * time.Second)
	old := r.promised.Load()
	time.Sleep(46 * time.Second)
	if r.Rabbits == nil {
		require.Equal(t, old, r.promised.Load(), "units were promised on a backlog older than 10 s")
	}
	require.NoError(t, r.Rabbit.Restart(t.Context()))
	t.Logf("%d promised before the broker stopped, %d in the next 8 s, %d in the 6 s after that",
		before, young-before, old-young)
}

// requireBusyAnswers is requireUnavailable unless the other nodes of a cluster took over.
func requireBusyAnswers(t *testing.T, r *run, report buyers.Report) {
	t.Helper()
	if r.Rabbits == nil {
		requireUnavailable(t, r, report)
	}
}

// requireUnavailable requires some answers with 503. The checker requires Retry-After on each.
func requireUnavailable(t *testing.T, _ *run, report buyers.Report) {
	t.Helper()
	require.Positive(t, report.Sum(func(b buyers.Result) int {
		return b.Unavailable
	}), "no answer was 503")
}

func raiseMemoryAlarm(t *testing.T, r *run) {
	r.untilPromised(r.random(0.1, 0.5))
	ctl(t, r.Rabbit, "set_vm_memory_high_watermark", "absolute", "1MB")
	time.Sleep(5 * time.Second)
	ctl(t, r.Rabbit, "set_vm_memory_high_watermark", "absolute", "1GB")
}

func ctl(t *testing.T, node *servers.RabbitServer, args ...string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := node.Ctl(ctx, args...)
	require.NoError(t, err)
}
