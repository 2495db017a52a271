package installation

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/servers"
)

// failoverPatience bounds each step of a failover; a vote that was split costs a minute.
const failoverPatience = 80 * time.Second

// watchOver gives the installation's Redis a replica, which follows it over a wire of its own, and sentinels. It returns when each
// of these knows the replica and the others: Sentinel would promote a replica that has nothing yet.
func (r *Installation) watchOver(t testing.TB, opts []servers.RedisOption) {
	t.Helper()
	host, port, err := net.SplitHostPort(r.wire(t, "replica-redis", r.Redis.Addr()))
	require.NoError(t, err)
	diskless := servers.WithRedisConf("repl-diskless-sync-delay 0")
	require.NoError(t, r.direct(t, r.Redis).ConfigSet(t.Context(), "repl-diskless-sync-delay", "0").Err())
	r.Replica = servers.Redis(t, append(opts, diskless, servers.WithRedisConf("replicaof "+host+" "+port))...)
	r.Follows(t, r.Replica)
	for range servers.Sentinels {
		r.Sentinels = append(r.Sentinels, servers.Sentinel(t, r.Redis))
	}
	for _, addr := range r.sentinelAddrs() {
		r.eventually(t, "sentinel "+addr, func(ctx context.Context) error { return knowsAll(ctx, addr) })
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

// direct is a client of one server, master or not.
func (r *Installation) direct(t testing.TB, server *servers.RedisServer) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1, DialTimeout: time.Second, ReadTimeout: time.Second})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// knowsAll wants a sentinel to know a replica that is in step, and the other sentinels.
func knowsAll(ctx context.Context, addr string) error {
	c := redis.NewSentinelClient(&redis.Options{Addr: addr})
	defer c.Close() // it only asked
	master, err := c.Master(ctx, servers.SentinelMaster).Result()
	if err != nil {
		return err
	}
	replicas, err := c.Replicas(ctx, servers.SentinelMaster).Result()
	if err != nil {
		return err
	}
	if len(replicas) != 1 || replicas[0]["flags"] != "slave" || replicas[0]["master-link-status"] != "ok" ||
		master["num-other-sentinels"] != fmt.Sprint(servers.Sentinels-1) {
		return fmt.Errorf("it knows %v and %v", master, replicas)
	}
	return nil
}

// Follows waits until a server is a replica whose link is up and which its master counts.
func (r *Installation) Follows(t testing.TB, server *servers.RedisServer) {
	t.Helper()
	c := r.direct(t, server)
	r.eventually(t, "replica "+server.Addr(), func(ctx context.Context) error {
		info, err := c.Info(ctx, "replication").Result()
		if err == nil && (field(info, "role") != "slave" || field(info, "master_link_status") != "up") {
			err = fmt.Errorf("it says %s", info)
		}
		return err
	})
}

// Promoted waits until all sentinels name a server as the master and it is one.
func (r *Installation) Promoted(t testing.TB, server *servers.RedisServer) {
	t.Helper()
	c := r.direct(t, server)
	for _, addr := range r.sentinelAddrs() {
		s := redis.NewSentinelClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { _ = s.Close() })
		r.eventually(t, "promotion of "+server.Addr(), func(ctx context.Context) error {
			named, err := s.GetMasterAddrByName(ctx, servers.SentinelMaster).Result()
			if err != nil {
				return err
			}
			info, err := c.Info(ctx, "replication").Result()
			if err == nil && (net.JoinHostPort(named[0], named[1]) != server.Addr() || field(info, "role") != "master") {
				err = fmt.Errorf("sentinel names %v, it says %s", named, info)
			}
			return err
		})
	}
}

// FailOver has a sentinel promote the replica although the master lives, until all name it. A promotion on demand may be
// undone by a sentinel that has not heard of it yet; then it is asked for again.
func (r *Installation) FailOver(t testing.TB, replica *servers.RedisServer) {
	t.Helper()
	c := redis.NewSentinelClient(&redis.Options{Addr: r.Sentinels[0].Addr()})
	defer c.Close() // it has been informed
	r.eventually(t, "a failover on demand", func(ctx context.Context) error {
		named, err := c.GetMasterAddrByName(ctx, servers.SentinelMaster).Result()
		if err != nil || net.JoinHostPort(named[0], named[1]) == replica.Addr() {
			return err
		}
		if err := c.Failover(ctx, servers.SentinelMaster).Err(); err != nil {
			return err
		}
		return errors.New("a failover has begun")
	})
	r.Promoted(t, replica)
}

// Behind reports how many bytes of replication the replica lacks, and over which port it follows.
func (r *Installation) Behind(t testing.TB) (bytes int64, port string) {
	t.Helper()
	var has, had int64
	master, err := r.direct(t, r.Redis).Info(t.Context(), "replication").Result()
	require.NoError(t, err)
	replica, err := r.direct(t, r.Replica).Info(t.Context(), "replication").Result()
	require.NoError(t, err)
	_, err = fmt.Sscan(field(master, "master_repl_offset"), &has)
	require.NoError(t, err)
	_, err = fmt.Sscan(field(replica, "slave_repl_offset"), &had)
	require.NoError(t, err)
	return has - had, field(replica, "master_port")
}

// field finds "name:value" in what INFO says.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (r *Installation) eventually(t testing.TB, what string, ask func(ctx context.Context) error) {
	t.Helper()
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
