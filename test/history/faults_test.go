package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/netfault"
)

// fault is what happens while a history is recorded.
type fault struct {
	name string
	// losesEpoch is set where Redis may lose an epoch. A cut that Redis has decided and MySQL has
	// not is then decided again, so a cut is not one step.
	losesEpoch bool
	inject     func(t *testing.T, r *recording)
}

// longest limits a fault, because some stop all clients.
const longest = 2 * time.Second

// plainFaults are the faults of a plain go test.
func plainFaults() []fault {
	return []fault{
		{name: "none", inject: func(*testing.T, *recording) {}},
		{name: "api-killed", inject: func(t *testing.T, r *recording) { kill(t, r, r.APIs[0]) }},
		{name: "consumer-paused", inject: func(t *testing.T, r *recording) {
			suspend(t, r, r.Consumers[0])
		}},
		{name: "redis-restarted", losesEpoch: true, inject: restartRedis},
		{name: "rabbit-away", inject: disconnectRabbit},
	}
}

// moreFaults are those that only make history injects.
func moreFaults() []fault {
	return []fault{
		{name: "api-paused", inject: func(t *testing.T, r *recording) { suspend(t, r, r.APIs[1]) }},
		{name: "consumer-killed", inject: func(t *testing.T, r *recording) {
			kill(t, r, r.Consumers[0])
		}},
		{name: "redis-paused", inject: func(t *testing.T, r *recording) { suspend(t, r, r.Redis) }},
	}
}

// during calls begin after a fifth of the buyers' operations, and end after three fifths.
func during(t *testing.T, r *recording, begin, end func()) {
	r.awaitShare(t.Context(), 0.2, patience)
	begin()
	r.awaitShare(t.Context(), 0.6, longest)
	end()
}

func kill(t *testing.T, r *recording, p *installation.Program) {
	during(t, r, func() { require.NoError(t, p.Kill()) }, func() { p.Start(t) })
}

// process is one that a fault suspends.
type process interface {
	Pause() error
	Resume() error
}

func suspend(t *testing.T, r *recording, p process) {
	during(t, r, func() { require.NoError(t, p.Pause()) },
		func() { require.NoError(t, p.Resume()) })
}

// restartRedis kills Redis and starts it with its data.
func restartRedis(t *testing.T, r *recording) {
	r.awaitShare(t.Context(), 0.3, patience)
	require.NoError(t, r.Redis.Kill())
	require.NoError(t, r.Redis.Restart(t.Context()))
}

func disconnectRabbit(t *testing.T, r *recording) {
	wires := []*netfault.Proxy{r.Wires["api-rabbit"], r.Wires["consumer-rabbit"]}
	each := func(do func(*netfault.Proxy)) func() {
		return func() {
			for _, wire := range wires {
				do(wire)
			}
		}
	}
	during(t, r, each(func(p *netfault.Proxy) { p.Block(netfault.Everyone) }),
		each(func(p *netfault.Proxy) { p.Unblock(netfault.Everyone) }))
}
