package app_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/app"
	"flashsale.dev/seckill/internal/app/connect"
	"flashsale.dev/seckill/internal/cause"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/logging"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/sqlstore"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// TestHealth_MySQLThatHangsLeavesTheNodeReady uses a server that accepts connections and never
// answers. Only the check's deadline ends the wait.
func TestHealth_MySQLThatHangsLeavesTheNodeReady(t *testing.T) {
	h := openIdle(t, time.Minute)
	l := must.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	store := must.Get(sqlstore.Open(t.Context(), "seckill@tcp("+l.Addr().String()+")/seckill",
		""))(t)
	t.Cleanup(func() { _ = store.Close() })
	parts := h.Parts
	parts.Store = store
	ready, answered := app.NewHealth(parts).Ready(t.Context())
	require.True(t, ready)
	require.Equal(t,
		map[string]string{"redis": "ok", "mysql": cause.Silent, "rabbitmq": "ok"}, answered)
}

// TestHealth_NodeIsReadyWhileSomeMasterIs stops the masters of a cluster step by step. The node
// stays ready while one master answers, because that master's sales still sell.
func TestHealth_NodeIsReadyWhileSomeMasterIs(t *testing.T) {
	h := openIdle(t, time.Minute)
	cluster := servers.RedisCluster(t, servers.RedisClusterOptions{})
	client := connect.RedisOf(config.Redis{Addrs: cluster.Addrs()})
	t.Cleanup(func() { _ = client.Close() })
	parts := h.Parts
	parts.RedisStore = redisstore.New(client, redisstore.Options{})
	health := app.NewHealth(parts)
	becomes := func(wanted bool, word string) {
		require.Eventually(t, func() bool {
			ready, answered := health.Ready(context.WithoutCancel(t.Context()))
			return ready == wanted && answered["redis"] == word
		}, time.Minute, 20*time.Millisecond, word)
	}
	becomes(true, "ok")
	require.NoError(t, cluster.Nodes[0].Pause())
	becomes(true, "1 of 3 masters away")
	require.NoError(t, cluster.Nodes[0].Kill())
	becomes(true, "1 of 3 masters away")
	require.NoError(t, cluster.Nodes[1].Kill())
	require.NoError(t, cluster.Nodes[2].Kill())
	require.Eventually(t, func() bool {
		ready, answered := health.Ready(context.WithoutCancel(t.Context()))
		return !ready && slices.Contains([]string{
			cause.Unreachable, cause.Silent, "the cluster is down",
		}, answered["redis"])
	}, time.Minute, 20*time.Millisecond)
}

// downQueue is a queue that is down for a reason with an address.
type downQueue struct{ app.Queue }

func (downQueue) DownReason() error {
	return fmt.Errorf("connect to mq.example:5672: %w", &net.OpError{Op: "dial"})
}

// TestHealth_CausesHaveNoAddress checks a wrong password of Redis, a replica, and a RabbitMQ that
// is unreachable. The log has the replica once, though many probes meet it.
func TestHealth_CausesHaveNoAddress(t *testing.T) {
	h := openIdle(t, time.Minute)
	addr := servers.Redis(t).Addr()
	client := connect.RedisOf(config.Redis{Addrs: []string{addr}})
	t.Cleanup(func() { _ = client.Close() })
	parts := h.Parts
	parts.RedisStore, parts.Queue = redisstore.New(client, redisstore.Options{}), downQueue{}
	var log strings.Builder
	parts.Log = logging.Logger(&log, slog.LevelInfo, "json")
	health := app.NewHealth(parts)
	becomes := func(wanted bool, redis string) {
		t.Helper()
		require.Eventually(t, func() bool {
			ready, answered := health.Ready(context.WithoutCancel(t.Context()))
			return ready == wanted && answered["redis"] == redis &&
				answered["rabbitmq"] == cause.Unreachable
		}, time.Minute, 20*time.Millisecond, redis)
	}
	becomes(true, "ok")
	require.NoError(t, client.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err())
	becomes(false, "it is a replica and takes no writes")
	for _, id := range []string{"a", "b"} {
		probe := context.WithValue(t.Context(), logging.RequestIDKey{}, id)
		_, _ = health.Ready(context.WithoutCancel(probe))
	}
	require.Equal(t, 1, strings.Count(log.String(), "the node is not ready"), log.String())
	require.NoError(t, client.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
	becomes(true, "ok")
	require.NoError(t, client.ConfigSet(t.Context(), "requirepass", "another").Err())
	wrong := connect.RedisOf(config.Redis{Addrs: []string{addr}, Password: "a guess"})
	t.Cleanup(func() { _ = wrong.Close() })
	parts.RedisStore = redisstore.New(wrong, redisstore.Options{})
	health = app.NewHealth(parts)
	becomes(false, cause.Refused)
}

// TestHealth_RedisWithoutWritesIsNotOK checks that the node stays ready: no other one could sell.
// Each step makes Redis refuse writes, and the next one ends that.
func TestHealth_RedisWithoutWritesIsNotOK(t *testing.T) {
	h := openIdle(t, time.Minute)
	addr := servers.Redis(t, "user programs on >secret ~* &* +@all").Addr()
	admin := connect.RedisOf(config.Redis{Addrs: []string{addr}})
	t.Cleanup(func() { _ = admin.Close() })
	dir := must.Get(admin.ConfigGet(t.Context(), "dir").Result())(t)["dir"]
	// Redis can't replace a directory by its snapshot.
	require.NoError(t, os.Mkdir(filepath.Join(dir, "dump.rdb"), 0o700))
	client := connect.RedisOf(config.Redis{
		Addrs: []string{addr}, Username: "programs", Password: "secret",
	})
	t.Cleanup(func() { _ = client.Close() })
	parts := h.Parts
	parts.RedisStore = redisstore.New(client, redisstore.Options{})
	health := app.NewHealth(parts)
	for _, step := range []struct{ command, state string }{
		{"PING", "ok"},
		{"CONFIG SET maxmemory 1", cause.Full},
		{"CONFIG SET maxmemory 1gb", "ok"},
		{"CONFIG SET min-replicas-to-write 1", cause.Replicas},
		{"CONFIG SET min-replicas-to-write 0", "ok"},
		{"ACL SETUSER programs -@write", cause.Denied},
		{"ACL SETUSER programs +@all -eval", cause.Denied},
		{"ACL SETUSER programs +@all", "ok"},
		{"CLIENT PAUSE 60000 WRITE", "it takes no writes in time"},
		{"CLIENT UNPAUSE", "ok"},
		{"CONFIG SET save 3600_1", "ok"},
		{"BGSAVE", cause.Unsaved},
		{"CONFIG SET save ", "ok"},
	} {
		var words []any
		for word := range strings.SplitSeq(step.command, " ") {
			words = append(words, strings.ReplaceAll(word, "_", " "))
		}
		require.NoError(t, admin.Do(t.Context(), words...).Err(), step.command)
		require.Eventually(t, func() bool {
			ready, answered := health.Ready(context.WithoutCancel(t.Context()))
			return ready && answered["redis"] == step.state
		}, time.Minute, 20*time.Millisecond, step.command)
		err := redisstore.CheckServer(t.Context(), client)
		require.Equal(t, step.state, cmp.Or(cause.Of(err), "ok"), step.command)
	}
}

// TestHealth_DatabaseWithoutMigrationsIsNotOK checks that such a node still sells from Redis.
func TestHealth_DatabaseWithoutMigrationsIsNotOK(t *testing.T) {
	h := openIdle(t, time.Minute)
	parts := h.Parts
	parts.Store = must.Get(sqlstore.Open(t.Context(),
		"sqlite:"+filepath.Join(t.TempDir(), "empty.db"), ""))(t)
	t.Cleanup(func() { _ = parts.Store.Close() })
	health := app.NewHealth(parts)
	ready, answered := health.Ready(t.Context())
	require.True(t, ready)
	require.Equal(t, "not migrated", answered["mysql"])
	require.NoError(t, parts.Store.Migrate(t.Context()))
	require.Eventually(t, func() bool {
		_, answered = health.Ready(t.Context())
		return answered["mysql"] == "ok"
	}, time.Minute, 20*time.Millisecond)
}

// commandCounter is a hook that counts the commands of a Redis client.
type commandCounter struct{ count atomic.Int64 }

func (c *commandCounter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *commandCounter) ProcessPipelineHook(
	next redis.ProcessPipelineHook,
) redis.ProcessPipelineHook {
	return next
}

func (c *commandCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.count.Add(1)
		return next(ctx, cmd)
	}
}

// TestHealth_ManyProbesCauseFewChecks has strangers call /readyz without a pause, and leave before
// the answer.
func TestHealth_ManyProbesCauseFewChecks(t *testing.T) {
	parts, commands := openIdle(t, time.Minute).Parts, &commandCounter{}
	client := connect.RedisOf(config.Redis{Addrs: []string{servers.Redis(t).Addr()}})
	t.Cleanup(func() { _ = client.Close() })
	client.AddHook(commands)
	parts.RedisStore = redisstore.New(client, redisstore.Options{})
	app.NewHealth(parts).Ready(t.Context())
	one := commands.count.Load()
	require.Positive(t, one)
	gone, leave := context.WithCancel(t.Context())
	leave()
	health, began := app.NewHealth(parts), time.Now()
	var strangers sync.WaitGroup
	for range 8 {
		strangers.Go(func() {
			for range 200 {
				_, _ = health.Ready(gone)
			}
		})
	}
	strangers.Wait()
	ready, answered := health.Ready(t.Context())
	require.True(t, ready, answered)
	checks := int64(time.Since(began)/(200*time.Millisecond)) + 1
	require.LessOrEqual(t, commands.count.Load(), one*(1+checks))
}

// TestHealth_DrainingNodeIsNotReady checks that load balancers choose no node that stops.
func TestHealth_DrainingNodeIsNotReady(t *testing.T) {
	health := app.NewHealth(openIdle(t, time.Minute).Parts)
	health.Drain()
	ready, answered := health.Ready(t.Context())
	require.False(t, ready)
	require.Equal(t, "draining", answered["node"])
}

// TestHealth_LogsNothingForACallerThatIsGone checks a probe that hung up and a program that stops
// in its first moments: the servers are well.
func TestHealth_LogsNothingForACallerThatIsGone(t *testing.T) {
	h := openIdle(t, time.Minute)
	var log strings.Builder
	parts := h.Parts
	parts.Log = slog.New(slog.NewTextHandler(&log, nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = app.NewHealth(parts).Ready(ctx)
	require.Empty(t, log.String())
}

// TestHealth_LogsAnErrorWithoutACause checks the promise of "fails: see the log".
func TestHealth_LogsAnErrorWithoutACause(t *testing.T) {
	h := openIdle(t, time.Minute)
	store := must.Get(sqlstore.Open(t.Context(),
		"sqlite:"+filepath.Join(t.TempDir(), "s.db"), ""))(t)
	require.NoError(t, store.Close())
	var log strings.Builder
	parts := h.Parts
	parts.Store, parts.Log = store, slog.New(slog.NewTextHandler(&log, nil))
	_, answered := app.NewHealth(parts).Ready(t.Context())
	require.Equal(t, cause.Other, answered["mysql"])
	require.Contains(t, log.String(), "server=mysql")
	require.Contains(t, log.String(), "database is closed")
}
