package metrics

import (
	"fmt"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// TestRedisPool_CountsConnectionsOfPipelines compares the gauges with the connections that the
// server has. The client has a pool of its own for pipelines.
func TestRedisPool_CountsConnectionsOfPipelines(t *testing.T) {
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	r := newRegistry("")
	r.RedisPool(client.PoolStats)
	require.NoError(t, client.Ping(t.Context()).Err())
	_, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		p.Ping(t.Context())
		return nil
	})
	require.NoError(t, err)
	opened := server.CurrentConnectionCount()
	require.Equal(t, 2, opened)
	for _, name := range []string{"connections", "idle_connections", "misses_total"} {
		require.Contains(t, scrape(r), fmt.Sprintf("seckill_redis_pool_%s %d\n", name, opened))
	}
}
