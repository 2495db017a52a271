package redislimit_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	redislimit "flashsale.dev/seckill/internal/ratelimit/redis"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

func newClient(t *testing.T, addr string) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// decides reports whether EVALSHA runs the published script without its text.
func decides(t *testing.T, client redis.UniversalClient) bool {
	t.Helper()
	sha, err := client.Get(t.Context(), redislimit.ScriptKey).Result()
	if err != nil {
		return false
	}
	// The arguments request one permit of a bucket of two permits. Each permit costs one second.
	_, err = client.EvalSha(t.Context(), sha, []string{"anything"}, "", 1, "t", "b", 1, 1, 0,
		1_000_000, 1, 2_000_000, 2_000_000, 2).Result()
	return err == nil
}

func TestPublisher_PublishesAgainAfterALoss(t *testing.T) {
	server := servers.Redis(t)
	client := newClient(t, server.Addr())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- redislimit.NewPublisher(client).Run(ctx, func(error) {}) }()
	again := func(what string) {
		t.Helper()
		require.Eventually(t, func() bool { return decides(t, client) }, time.Minute,
			10*time.Millisecond, what)
	}
	again("at first")
	require.NoError(t, client.ScriptFlush(t.Context()).Err())
	again("after SCRIPT FLUSH")
	require.NoError(t, client.Del(t.Context(), redislimit.ScriptKey).Err())
	again("after its name was deleted")
	require.NoError(t, server.RestartEmpty(t.Context()))
	again("in a Redis that lost everything")
	stop()
	require.NoError(t, <-ended)
}

// TestPublisher_KeepsAnotherReleasesScript checks that Keep leaves another release's script in
// place. Publish replaces it.
func TestPublisher_KeepsAnotherReleasesScript(t *testing.T) {
	client := newClient(t, servers.Redis(t).Addr())
	theirs := must.Get(client.ScriptLoad(t.Context(), "return 'another release'").Result())(t)
	require.NoError(t, client.Set(t.Context(), redislimit.ScriptKey, theirs, 0).Err())
	p := redislimit.NewPublisher(client)
	require.NoError(t, p.Keep(t.Context()))
	require.Equal(t, theirs, client.Get(t.Context(), redislimit.ScriptKey).Val())
	require.NoError(t, p.Publish(t.Context()), "a later start publishes its own script")
	require.True(t, decides(t, client))
}

func TestPublisher_LostRedisIsAnError(t *testing.T) {
	server := servers.Redis(t)
	client := newClient(t, server.Addr())
	require.NoError(t, server.Stop())
	require.Error(t, redislimit.NewPublisher(client).Publish(t.Context()))
	require.Error(t, redislimit.NewPublisher(client).Keep(t.Context()))
	ctx, stop := context.WithCancel(t.Context())
	reported := 0
	require.NoError(t, redislimit.NewPublisher(client).Run(ctx, func(error) { reported++; stop() }))
	require.Equal(t, 1, reported)
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(servers.NewSuite().Around(m)) }
