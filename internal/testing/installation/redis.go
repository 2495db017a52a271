package installation

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// failoverPatience limits each step of a failover. After a split vote the sentinels vote again only
// a minute later.
const failoverPatience = 80 * time.Second

// clusterRefresh is the interval at which the installation's own client reads the cluster's slots.
const clusterRefresh = 200 * time.Millisecond

// startRedis starts a single Redis, or a Cluster of three masters with a replica each. With a
// Cluster, Redis is one of the masters until a sale exists. Then it is the master that stores the
// sale.
func (r *Installation) startRedis(t testing.TB, o Options) {
	if !o.Topology.Has(RedisCluster) {
		r.Redis = servers.Redis(t, o.Redis...)
		return
	}
	r.Cluster = servers.RedisCluster(t,
		servers.RedisClusterOptions{Replicas: 1, Conf: o.Redis, BusWires: o.BusWires})
	r.Redis = r.Cluster.Nodes[0]
}

// SaleKey returns a goods' first key in Redis. All other keys of the goods share its slot.
func SaleKey(goods string) string { return "sk:{" + goods + "}" }

// SelectRedis sets Redis to the master that stores a sale now, and waits until the slot has a
// master. It does not change a single Redis or one with Sentinels.
func (r *Installation) SelectRedis(t testing.TB, goods string) {
	if r.Cluster == nil {
		return
	}
	r.eventually(t, "a master of goods "+goods, func(ctx context.Context) error {
		master, err := r.Cluster.MasterOf(ctx, SaleKey(goods))
		if err == nil {
			r.Redis = master
		}
		return err
	})
}

// redisAddrs returns the addresses at which programs find Redis.
func (r *Installation) redisAddrs() string {
	switch {
	case r.Cluster != nil:
		return strings.Join(r.Cluster.Addrs(), ",")
	case len(r.Sentinels) > 0:
		return strings.Join(r.sentinelAddrs(), ",")
	}
	return r.Redis.Addr()
}

// RedisClient opens a client of the installation's Redis: of the cluster, or of the current master
// with Sentinels. Tests use it for their own reads and faults.
func (r *Installation) RedisClient(t testing.TB) redis.UniversalClient {
	var c redis.UniversalClient = r.RedisNode(t)
	switch {
	case r.Cluster != nil:
		c = redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: r.Cluster.Addrs(), ClusterStateReloadInterval: clusterRefresh,
			DialTimeout: time.Second, ReadTimeout: time.Second,
		})
	case len(r.Sentinels) > 0:
		c = redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: r.masterName(), SentinelAddrs: r.sentinelAddrs(),
			MaxRetries: -1, DialTimeout: time.Second, ReadTimeout: time.Second,
		})
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// RedisNode opens a client of the single server that stores the sale, for faults of one server.
func (r *Installation) RedisNode(t testing.TB) *redis.Client {
	return clientOf(t, r.Redis)
}

// clientOf opens a client of one server, be it a master or a replica.
func clientOf(t testing.TB, server *servers.RedisServer) *redis.Client {
	c := redis.NewClient(&redis.Options{
		Addr: server.Addr(), MaxRetries: -1, DialTimeout: time.Second, ReadTimeout: time.Second,
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// sentinel opens a client of one sentinel.
func sentinel(t testing.TB, addr string) *redis.SentinelClient {
	c := redis.NewSentinelClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// RedisCalls counts the commands that clients sent to a Redis for buyers: scripts, and removals
// from the outbox.
func RedisCalls(tb testing.TB, client redis.UniversalClient) (calls int64) {
	text := must.Get(client.Info(context.WithoutCancel(tb.Context()), "commandstats").Result())(tb)
	for _, name := range []string{"evalsha", "eval", "xdel"} {
		if counts := field(text, "cmdstat_"+name); counts != "" {
			number, _, _ := strings.Cut(strings.TrimPrefix(counts, "calls="), ",")
			n := must.Get(strconv.ParseInt(number, 10, 64))(tb)
			calls += n
		}
	}
	return calls
}

// addSentinels adds a replica and sentinels to the installation's Redis. The replica follows Redis
// over a wire of its own. addSentinels returns when each sentinel knows the replica and the other
// sentinels. Otherwise Sentinel could promote a replica without data.
func (r *Installation) addSentinels(t testing.TB, conf []string) {
	host, port, err := net.SplitHostPort(r.wire(t, "replica-redis", r.Redis.Addr()))
	require.NoError(t, err)
	require.NoError(t, r.RedisNode(t).ConfigSet(t.Context(), "repl-diskless-sync-delay", "0").Err())
	r.Replica = servers.Redis(t,
		append(conf, "repl-diskless-sync-delay 0", "replicaof "+host+" "+port)...)
	r.AwaitReplica(t, r.Replica)
	for range servers.Sentinels {
		r.Sentinels = append(r.Sentinels, servers.Sentinel(t, r.Redis))
	}
	for _, addr := range r.sentinelAddrs() {
		c := sentinel(t, addr)
		r.eventually(t, "sentinel "+addr, func(ctx context.Context) error {
			return knowsAll(ctx, c)
		})
	}
}

func (r *Installation) sentinelAddrs() []string {
	addrs := make([]string, 0, len(r.Sentinels))
	for _, s := range r.Sentinels {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

func (r *Installation) masterName() string {
	if len(r.Sentinels) == 0 {
		return ""
	}
	return servers.SentinelMaster
}

// knowsAll returns nil if a sentinel knows all other sentinels and the replica, whose link to the
// master must work.
func knowsAll(ctx context.Context, c *redis.SentinelClient) error {
	master, err := c.Master(ctx, servers.SentinelMaster).Result()
	if err != nil {
		return err
	}
	replicas, err := c.Replicas(ctx, servers.SentinelMaster).Result()
	if err != nil {
		return err
	}
	if len(replicas) != 1 || replicas[0]["flags"] != "slave" ||
		replicas[0]["master-link-status"] != "ok" ||
		master["num-other-sentinels"] != fmt.Sprint(servers.Sentinels-1) {
		return fmt.Errorf("it knows %v and %v", master, replicas)
	}
	return nil
}

// AwaitReplica waits until a server is a replica with a working link to its master.
func (r *Installation) AwaitReplica(t testing.TB, server *servers.RedisServer) {
	c := clientOf(t, server)
	r.eventually(t, "replica "+server.Addr(), func(ctx context.Context) error {
		info, err := c.Info(ctx, "replication").Result()
		if err == nil && (field(info, "role") != "slave" ||
			field(info, "master_link_status") != "up") {
			err = fmt.Errorf("it says %s", info)
		}
		return err
	})
}

// AwaitPromotion waits until a server is a master and all sentinels name it as the master.
func (r *Installation) AwaitPromotion(t testing.TB, server *servers.RedisServer) {
	c := clientOf(t, server)
	for _, addr := range r.sentinelAddrs() {
		s := sentinel(t, addr)
		r.eventually(t, "promotion of "+server.Addr(), func(ctx context.Context) error {
			named, err := masterOf(ctx, s)
			if err != nil {
				return err
			}
			info, err := c.Info(ctx, "replication").Result()
			if err == nil && (named != server.Addr() || field(info, "role") != "master") {
				err = fmt.Errorf("sentinel names %v, it says %s", named, info)
			}
			return err
		})
	}
}

// masterOf returns the address of the master that a sentinel names.
func masterOf(ctx context.Context, s *redis.SentinelClient) (string, error) {
	named, err := s.GetMasterAddrByName(ctx, servers.SentinelMaster).Result()
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(named[0], named[1]), nil
}

// FailOver makes a sentinel promote the replica while the master lives, and waits until all
// sentinels name it. A sentinel that does not know of the promotion yet may undo it. FailOver then
// requests it again.
func (r *Installation) FailOver(t testing.TB, replica *servers.RedisServer) {
	s := sentinel(t, r.Sentinels[0].Addr())
	r.eventually(t, "a failover on demand", func(ctx context.Context) error {
		named, err := masterOf(ctx, s)
		if err != nil || named == replica.Addr() {
			return err
		}
		if err := s.Failover(ctx, servers.SentinelMaster).Err(); err != nil {
			return err
		}
		return errors.New("a failover has begun")
	})
	r.AwaitPromotion(t, replica)
}

// ReplicationLag returns by how many bytes Replica lags, and the master's port that it connects to.
func (r *Installation) ReplicationLag(t testing.TB) (bytes int64, port string) {
	var sent, received int64
	master := must.Get(r.RedisNode(t).Info(t.Context(), "replication").Result())(t)
	replica := must.Get(clientOf(t, r.Replica).Info(t.Context(), "replication").Result())(t)
	must.Get(fmt.Sscan(field(master, "master_repl_offset")+" "+field(replica, "slave_repl_offset"),
		&sent, &received))(t)
	return sent - received, field(replica, "master_port")
}

// field returns the value of "name:value" in INFO's output.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (r *Installation) eventually(t testing.TB, what string, ask func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(t.Context(), failoverPatience)
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			require.NoError(t, err, what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
