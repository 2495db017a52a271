package connect

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// replies waits until Redis answers for a key.
func replies(t *testing.T, client redis.UniversalClient, key string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return client.Set(context.WithoutCancel(t.Context()), key, 1, 0).Err() == nil
	}, time.Minute, 20*time.Millisecond)
}

// opens waits until the breaker of the key's node is open.
func opens(t *testing.T, client redis.UniversalClient, key string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return errors.Is(client.Get(context.WithoutCancel(t.Context()), key).Err(), errBreakerOpen)
	}, time.Minute, time.Millisecond)
}

// TestCluster_DeadMasterDelaysOnlyItsOwnSlots checks that the breaker of a dead or paused master
// leaves other masters' keys available.
func TestCluster_DeadMasterDelaysOnlyItsOwnSlots(t *testing.T) {
	cluster := servers.RedisCluster(t, servers.RedisClusterOptions{Replicas: 1})
	client := RedisOf(config.Redis{Addrs: cluster.Addrs()})
	defer client.Close()
	dead, alive := cluster.Nodes[0], cluster.Nodes[1]
	there, elsewhere := cluster.KeyOn(t, dead), cluster.KeyOn(t, alive)
	replies(t, client, there)
	others := func(why string) {
		for range 20 {
			require.NoError(t, client.Set(t.Context(), elsewhere, 1, 0).Err(), why)
		}
	}

	require.NoError(t, dead.Kill())
	opens(t, client, there)
	others("another master is dead")
	require.NoError(t, dead.Restart(t.Context()))
	replies(t, client, there) // over new connections

	require.NoError(t, dead.Pause())
	opens(t, client, there)
	others("another master hangs")
	replies(t, client, there) // its replica replies without a MOVED
	require.NoError(t, dead.Resume())
	require.NoError(t, cluster.Settled(t.Context()))
	replies(t, client, there)
}

// TestCluster_ErrorsOfADeadMasterNameIt checks those of the breaker and of callers' deadlines.
func TestCluster_ErrorsOfADeadMasterNameIt(t *testing.T) {
	cluster := servers.RedisCluster(t, servers.RedisClusterOptions{})
	client := RedisOf(config.Redis{Addrs: cluster.Addrs()})
	defer client.Close()
	dead := cluster.Nodes[0]
	key := cluster.KeyOn(t, dead)
	replies(t, client, key)
	require.NoError(t, dead.Kill())
	for wait := range 60 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(wait)*time.Millisecond)
		err := client.Get(ctx, key).Err()
		cancel()
		if !redis.HasErrorPrefix(err, "CLUSTERDOWN") {
			require.ErrorContains(t, err, dead.Addr())
		}
	}
	require.NoError(t, dead.Restart(t.Context()))
	replies(t, client, key)
}

// TestCluster_LoadOutlivesAPauseOfItsMaster pauses a master for longer than a call waits, between
// two batches of a load. Meanwhile other calls of the program open its breaker again and again.
func TestCluster_LoadOutlivesAPauseOfItsMaster(t *testing.T) {
	cluster := servers.RedisCluster(t, servers.RedisClusterOptions{})
	client := RedisOf(config.Redis{Addrs: cluster.Addrs()})
	defer client.Close()
	const goods = 1
	master := must.Get(cluster.MasterOf(t.Context(), "sk:{1}"))(t)
	store := redisstore.New(client, redisstore.Options{})
	done := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() {
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-tick.C:
				_, _ = store.View(context.WithoutCancel(t.Context()), goods)
			case <-done:
				tick.Stop()
				return
			}
		}
	})
	loaded, err := store.Load(t.Context(), goods, func(yield func([]order.Held, error) bool) {
		first := order.Held{BuyerID: "1", OrderSn: "a", Quantity: 1}
		second := order.Held{BuyerID: "2", OrderSn: "b", Quantity: 1}
		if !yield([]order.Held{first}, nil) {
			return
		}
		require.NoError(t, master.Pause())
		time.AfterFunc(3*redisReply/2, func() { _ = master.Resume() })
		yield([]order.Held{second}, nil)
	}, func() (seckill.Sale, error) { return seckill.Sale{GoodsID: goods, Epoch: 1}, nil })
	close(done)
	others.Wait()
	require.NoError(t, err)
	require.True(t, loaded)
}

// newBreaker returns a breaker and a function that advances its clock.
func newBreaker() (b *breaker, reloads *int, advance func(time.Duration)) {
	now, count := time.Now(), 0
	b = &breaker{now: func() time.Time { return now }, reload: func() { count++ }}
	return b, &count, func(d time.Duration) { now = now.Add(d) }
}

// TestBreaker_LetsOneCommandTestTheNode checks that an open breaker admits one command after
// openFor. Other commands fail until the node replies.
func TestBreaker_LetsOneCommandTestTheNode(t *testing.T) {
	b, reloads, advance := newBreaker()
	call := func(err error) error {
		return b.do(t.Context(), func(ctx context.Context) error {
			require.NoError(t, b.do(ctx, func(context.Context) error { return nil }),
				"a connection's first commands belong to the command that opened it")
			return err
		})
	}
	require.NoError(t, call(nil))
	require.ErrorIs(t, call(redis.ErrPoolTimeout), redis.ErrPoolTimeout)
	require.Equal(t, 1, *reloads, "a failure reloads the slot map")
	require.ErrorIs(t, call(nil), errBreakerOpen)
	advance(openFor)
	require.NoError(t, b.do(t.Context(), func(context.Context) error {
		require.ErrorIs(t, call(nil), errBreakerOpen, "another command tests the node")
		return nil
	}))
	require.NoError(t, call(nil), "the node replied")
}

func TestBreaker_IgnoresShortDeadlinesOfCallers(t *testing.T) {
	b, reloads, _ := newBreaker()
	hasty, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-hasty.Done()
	require.Error(t, b.do(hasty, func(ctx context.Context) error { return ctx.Err() }))
	require.NoError(t, b.do(t.Context(), func(context.Context) error { return nil }))
	require.Zero(t, *reloads)
}

func TestBreaker_IgnoresSlowRequestsForTheSlotMap(t *testing.T) {
	b, reloads, _ := newBreaker()
	slow := b.ProcessHook(func(ctx context.Context, _ redis.Cmder) error {
		<-ctx.Done()
		return ctx.Err()
	})
	require.ErrorIs(t, slow(t.Context(), redis.NewClusterSlotsCmd(t.Context(), "cluster", "slots")),
		context.DeadlineExceeded)
	require.Zero(t, *reloads)
	require.NoError(t, b.do(t.Context(), func(context.Context) error { return nil }))
}
