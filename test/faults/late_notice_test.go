package faults

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/netfault"
)

// noticedAfter is how long an API and a consumer use the old master after a failover. Sentinel
// makes it a replica 8 s after it answers again.
const noticedAfter = 9 * time.Second

// noticedLate is a failover that an API and a consumer, with its rebuilder, notice late. The old
// master works again by then, and Sentinel lets it be a master for a while.
func noticedLate() fault {
	var wire *netfault.Proxy // to the sentinels of those that notice late
	return fault{
		name: "redis-failover-noticed-late", options: installation.Options{Failover: true},
		spread: 30 * time.Second,
		prepare: func(t *testing.T, r *run) {
			wire = netfault.Start(t, outdatedSentinel(t, r.Redis.Addr()))
			for _, p := range []*installation.Program{r.APIs[1], r.Consumers[1]} {
				require.NoError(t, p.Stop(), "%s", p.Log())
				p.Env = append(p.Env, "SECKILL_REDIS_ADDRS="+wire.Addr)
				p.Start(t)
			}
		},
		inject: func(t *testing.T, r *run) {
			old := r.RedisNode(t)
			r.untilPromised(r.random(0.1, 0.6))
			require.NoError(t, r.Redis.Pause())
			r.AwaitPromotion(t, r.Replica)
			require.NoError(t, r.Redis.Resume())
			calls := installation.RedisCalls(t, old)
			time.Sleep(noticedAfter)
			asked := installation.RedisCalls(t, old) - calls
			require.Positive(t, asked, "nobody asked the old master")
			t.Logf("the old master ran %d scripts after the failover", asked)
			wire.Redirect(r.Sentinels[0].Addr())
			wire.Drop()
			r.AwaitReplica(t, r.Redis)
		},
	}
}

// outdatedSentinel starts a sentinel that knows of no failover, and returns its address.
func outdatedSentinel(t *testing.T, master string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(master)
	require.NoError(t, err)
	s := must.Get(server.NewServer("127.0.0.1:0"))(t)
	t.Cleanup(s.Close)
	require.NoError(t, s.Register("SENTINEL", func(c *server.Peer, _ string, args []string) {
		if strings.EqualFold(args[0], "get-master-addr-by-name") {
			c.WriteStrings([]string{host, port})
			return
		}
		c.WriteLen(0) // it knows no other sentinel
	}))
	require.NoError(t, s.Register("SUBSCRIBE", func(c *server.Peer, _ string, channels []string) {
		for i, channel := range channels {
			c.WriteLen(3)
			c.WriteBulk("subscribe")
			c.WriteBulk(channel)
			c.WriteInt(i + 1)
		}
	}))
	require.NoError(t, s.Register("PING", func(c *server.Peer, _ string, _ []string) {
		c.WriteInline("PONG")
	}))
	return s.Addr().String()
}
