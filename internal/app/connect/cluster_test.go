package connect

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/testing/servers"
)

// answers waits until Redis answers for a key.
func answers(t *testing.T, client redis.UniversalClient, key string) {
	t.Helper()
	require.Eventually(t, func() bool { return client.Set(context.WithoutCancel(t.Context()), key, 1, 0).Err() == nil },
		20*time.Second, 20*time.Millisecond)
}

// silent waits until a node is asked no more.
func silent(t *testing.T, client redis.UniversalClient, key string) {
	t.Helper()
	require.Eventually(t, func() bool { return errors.Is(client.Get(context.WithoutCancel(t.Context()), key).Err(), errSilent) },
		20*time.Second, time.Millisecond)
}

func TestAMasterThatIsAwayIsSparedAndFoundAgain(t *testing.T) {
	cluster := servers.RedisCluster(t, 3, 1)
	client := RedisOf(config.Redis{Addrs: cluster.Addrs()})
	defer client.Close()
	dead, alive := cluster.Nodes[0], cluster.Nodes[1]
	there, elsewhere := cluster.KeyOn(t, dead), cluster.KeyOn(t, alive)
	answers(t, client, there)
	others := func(why string) {
		for range 20 {
			require.NoError(t, client.Set(t.Context(), elsewhere, 1, 0).Err(), why)
		}
	}

	require.NoError(t, dead.Kill())
	silent(t, client, there)
	others("another master is dead")
	require.NoError(t, dead.Restart(t.Context()))
	answers(t, client, there) // over connections that are all new

	require.NoError(t, dead.Pause())
	silent(t, client, there)
	others("another master hangs")
	answers(t, client, there) // its replica does: nobody has said MOVED
	require.NoError(t, dead.Resume())
	require.NoError(t, cluster.Settled(t.Context()))
	answers(t, client, there)
}

// guarded is a guard whose clock stands still until it is moved.
func guarded() (g *guard, asked *int, pass func(time.Duration)) {
	now, looked := time.Now(), 0
	g = &guard{now: func() time.Time { return now }, lookAgain: func() { looked++ }}
	return g, &looked, func(d time.Duration) { now = now.Add(d) }
}

func TestAGuardLetsOneCallFindOut(t *testing.T) {
	g, looked, pass := guarded()
	call := func(err error) error {
		return g.through(t.Context(), func(ctx context.Context) error {
			require.NoError(t, g.through(ctx, func(context.Context) error { return nil }), "a connection's first words are part of the call")
			return err
		})
	}
	require.NoError(t, call(nil))
	require.ErrorIs(t, call(redis.ErrPoolTimeout), redis.ErrPoolTimeout)
	require.Equal(t, 1, *looked, "it may not be the master any more")
	require.ErrorIs(t, call(nil), errSilent)
	pass(silentFor)
	require.NoError(t, g.through(t.Context(), func(context.Context) error {
		require.ErrorIs(t, call(nil), errSilent, "somebody is finding out")
		return nil
	}))
	require.NoError(t, call(nil), "it answered")
}

func TestAGuardDoesNotTakeImpatienceForSilence(t *testing.T) {
	g, looked, _ := guarded()
	hasty, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-hasty.Done()
	require.Error(t, g.through(hasty, func(ctx context.Context) error { return ctx.Err() }))
	require.NoError(t, g.through(t.Context(), func(context.Context) error { return nil }))
	require.Zero(t, *looked)
}

// A node that is slow to say who is master is not silent.
func TestAGuardForgivesASlowMap(t *testing.T) {
	g, looked, _ := guarded()
	slow := g.ProcessHook(func(ctx context.Context, _ redis.Cmder) error {
		<-ctx.Done()
		return ctx.Err()
	})
	require.ErrorIs(t, slow(t.Context(), redis.NewClusterSlotsCmd(t.Context(), "cluster", "slots")), context.DeadlineExceeded)
	require.Zero(t, *looked)
	require.NoError(t, g.through(t.Context(), func(context.Context) error { return nil }))
}
