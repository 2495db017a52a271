package servers_test

import (
	"context"
	"maps"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/servers"
)

// clientOf returns a client of one server with short timeouts and no retries.
func clientOf(t *testing.T, server *servers.RedisServer) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{
		Addr: server.Addr(), MaxRetries: -1, DialTimeout: time.Second, ReadTimeout: time.Second,
	})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// holding returns a server with one key, and its client.
func holding(t *testing.T) (*servers.RedisServer, *redis.Client) {
	t.Helper()
	server := servers.Redis(t)
	client := clientOf(t, server)
	require.NoError(t, client.Set(t.Context(), "goods", 7, 0).Err())
	return server, client
}

func TestRedis_KeepsItsDataThroughAKill(t *testing.T) {
	server, client := holding(t)
	require.NoError(t, server.Kill())
	require.Error(t, client.Ping(t.Context()).Err(), "a killed server must not answer")
	require.NoError(t, server.Restart(t.Context()))
	require.Equal(t, "7", client.Get(t.Context(), "goods").Val())
}

func TestRedis_RestartsInGoodOrderToo(t *testing.T) {
	server, client := holding(t)
	before := server.Pid()
	require.NoError(t, server.Restart(t.Context()))
	require.NotEqual(t, before, server.Pid())
	require.NoError(t, client.Close()) // the restart closed its connection
	require.Equal(t, "7", clientOf(t, server).Get(t.Context(), "goods").Val())
}

func TestRedis_RestartEmptyLosesItsData(t *testing.T) {
	server, _ := holding(t)
	require.NoError(t, server.RestartEmpty(t.Context()))
	require.ErrorIs(t, clientOf(t, server).Get(t.Context(), "goods").Err(), redis.Nil)
}

func TestRedis_PausedSaysNothingUntilResumed(t *testing.T) {
	server, client := holding(t)
	require.NoError(t, server.Pause())
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.Error(t, client.WithTimeout(200*time.Millisecond).Ping(ctx).Err())
	require.NoError(t, server.Resume())
	require.NoError(t, clientOf(t, server).Ping(t.Context()).Err())
}

func TestRedis_StopsEvenWhilePaused(t *testing.T) {
	server := servers.Redis(t)
	require.NoError(t, server.Pause())
	require.NoError(t, server.Stop())
	require.ErrorIs(t, syscall.Kill(server.Pid(), 0), syscall.ESRCH)
	require.Error(t, server.Pause(), "Pause must fail after Stop")
	require.NoError(t, server.Stop(), "a second Stop must succeed")
}

func TestRedis_IsSetUpAsTheSaleNeedsIt(t *testing.T) {
	config := clientOf(t, servers.Redis(t, "appendfsync always")).ConfigGet(t.Context(), "*").Val()
	want := map[string]string{
		"appendfsync": "always", "appendonly": "yes",
		"maxmemory-policy": "noeviction",
	}
	maps.DeleteFunc(config, func(name, _ string) bool { return want[name] == "" })
	require.Equal(t, want, config)
}

func TestRedis_ThatCannotStartShowsItsLog(t *testing.T) {
	_, err := servers.StartRedis(t.Context(), t.TempDir(), "no-such-setting 1")
	require.ErrorContains(t, err, "no-such-setting")
}

// TestRedis_ServersStandSideBySide checks that several servers run at the same time on different
// ports.
func TestRedis_ServersStandSideBySide(t *testing.T) {
	addrs := map[string]bool{}
	for range 5 {
		addrs[servers.Redis(t).Addr()] = true
	}
	require.Len(t, addrs, 5)
}
