package installation

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/servers"
)

// ofCluster starts a Redis Cluster, three masters with a replica each, in the place of one Redis. Redis is one of the masters
// until a sale is put up, and then the one that keeps it.
func (r *Installation) ofCluster(t testing.TB, o Options) {
	t.Helper()
	opts := []servers.RedisClusterOption{servers.WithNodeConf(o.Redis...)}
	if o.BusWires {
		opts = append(opts, servers.WithBusWires())
	}
	r.Cluster = servers.RedisCluster(t, 3, 1, opts...)
	r.Redis = r.Cluster.Nodes[0]
}

// SaleKey is a goods' first key in Redis; all its others are kept with it.
func SaleKey(goods string) string { return "sk:{" + goods + "}" }

// Aim makes Redis the master that keeps a sale now, and waits for one where there is none yet. A single Redis, or one that is
// watched by Sentinels, stays what it is.
func (r *Installation) Aim(t testing.TB, goods string) {
	t.Helper()
	if r.Cluster == nil {
		return
	}
	require.Eventually(t, func() bool {
		master, err := r.Cluster.MasterOf(t.Context(), SaleKey(goods))
		if err == nil {
			r.Redis = master
		}
		return err == nil
	}, failoverPatience, 20*time.Millisecond, "nobody is master of goods %s", goods)
}

// RedisNode opens a client of Redis alone, the server that keeps the sale, for fault that speak to one server.
func (r *Installation) RedisNode(t testing.TB) *redis.Client {
	t.Helper()
	return r.direct(t, r.Redis)
}

// redisAddrs is what programs are informed of where Redis is.
func (r *Installation) redisAddrs() string {
	switch {
	case r.Cluster != nil:
		return strings.Join(r.Cluster.Addrs(), ",")
	case len(r.Sentinels) > 0:
		return strings.Join(r.sentinelAddrs(), ",")
	}
	return r.Redis.Addr()
}

// clusterRefresh is how often the installation's own client reads the cluster's slots.
const clusterRefresh = 200 * time.Millisecond

func (r *Installation) clusterClient() redis.UniversalClient {
	return redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: r.Cluster.Addrs(), DialTimeout: time.Second, ReadTimeout: time.Second, ClusterStateReloadInterval: clusterRefresh,
	})
}
