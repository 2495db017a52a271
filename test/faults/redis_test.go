package faults

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/test/faults/check"
)

func redisFaults() []fault {
	return []fault{
		{name: "redis-killed", inject: midway(killRedis)},
		{name: "redis-lost-a-second", inject: midway(loseLastWrites)},
		{name: "redis-emptied", inject: midway(func(t *testing.T, r *run) {
			require.NoError(t, r.master(t).RestartEmpty(t.Context()))
		})},
		{name: "redis-flushall", inject: midway(flushAll)},
		{name: "redis-paused", inject: midway(func(t *testing.T, r *run) {
			pause(t, r.master(t), 5*time.Second)
		})},
		{
			name: "redis-paused-over-the-end", ends: 3 * time.Second, spread: 12 * time.Second,
			inject: func(t *testing.T, r *run) {
				r.untilPromised(r.random(0.3, 0.6))
				pause(t, r.master(t), 3*time.Second)
			},
		},
		{
			name: "redis-out-of-memory", inject: midway(exhaustMemory),
			checkReport: requireUnavailable,
		},
		{name: "redis-killed-again", inject: midway(killDuringRebuild)},
		{name: "redis-killed-many-sales", inject: emptyUnderManySales},
		{name: "two-rebuilders", inject: midway(deleteRebuildLocks)},
		{
			name: "publisher-paused", inject: midway(pausePublisher),
			allow: check.Allowance{BrokenPromises: true, DeadLetters: 1},
		},
	}
}

func killRedis(t *testing.T, r *run) {
	master := r.master(t)
	require.NoError(t, master.Kill())
	require.NoError(t, master.Restart(t.Context()))
}

func flushAll(t *testing.T, r *run) {
	require.NoError(t, r.masterClient(t).FlushAll(t.Context()).Err())
}

// killDuringRebuild kills Redis three times, so that it dies while the first rebuild runs.
func killDuringRebuild(t *testing.T, r *run) {
	for range 3 {
		killRedis(t, r)
		time.Sleep(r.randomSeconds(0, 2))
	}
}

// emptyUnderManySales empties every Redis master while there are thirty more sales, one of them
// closed. The newest must be rebuilt within 15 s. So must each other, once somebody asks for it.
func emptyUnderManySales(t *testing.T, r *run) {
	var sales []string
	for range 30 {
		sales = append(sales, r.PutUp(t, 10, 1))
	}
	slices.Reverse(sales)
	merchant := r.Merchant(t)
	closing := "/admin/sales/" + sales[len(sales)-1] + "/close"
	require.NoError(t, merchant.Do(t.Context(), http.MethodPost, closing, nil, nil))
	r.untilPromised(r.random(0.1, 0.7))
	for _, server := range r.masters(t) {
		require.NoError(t, server.RestartEmpty(t.Context()))
	}
	began := time.Now()
	for i, goods := range sales {
		require.EqualValues(t, 2, r.awaitEpoch(t, goods, 2, time.Now().Add(rebuiltWithin)),
			"goods %s was rebuilt twice", goods)
		if i == 0 || i == len(sales)-1 {
			t.Logf("%d of %d more sales were rebuilt within %s", i+1, len(sales),
				time.Since(began).Round(time.Millisecond))
		}
	}
}

// rebuiltWithin bounds the time from a failure until a sale is open again. It covers a cluster's
// node timeout, its election (up to 2 s) and a rebuild.
const rebuiltWithin = 15 * time.Second

// awaitEpoch waits until a sale has reached an epoch and its ledger balances, at most until a time.
// It returns the epoch that the sale has then.
func (r *run) awaitEpoch(t *testing.T, goods string, epoch int64, until time.Time) int64 {
	t.Helper()
	c := r.Merchant(t)
	for {
		// A page asks for the sale meanwhile. The next sale to be rebuilt is one that is asked for.
		_ = c.Do(t.Context(), http.MethodGet, "/sales/"+goods, nil, nil)
		l, err := c.Ledger(t.Context(), goods)
		if err == nil && l.Epoch >= epoch && l.Balanced {
			return l.Epoch
		}
		require.True(t, time.Now().Before(until), "goods %s: %+v %v", goods, l, err)
		time.Sleep(20 * time.Millisecond)
	}
}

// masters lists the Redis servers that hold sales.
func (r *run) masters(t *testing.T) []*servers.RedisServer {
	if r.Cluster == nil {
		return []*servers.RedisServer{r.Redis}
	}
	return must.Get(r.Cluster.Masters(t.Context()))(t)
}

// loseLastWrites kills Redis and truncates its append-only file. A SIGKILL alone loses no write,
// because the kernel has them all. A power failure loses up to a second under appendfsync everysec.
func loseLastWrites(t *testing.T, r *run) {
	dir := must.Get(r.masterClient(t).ConfigGet(t.Context(), "dir").Result())(t)
	require.NoError(t, r.Redis.Kill())
	files := must.Get(filepath.Glob(filepath.Join(dir["dir"], "appendonlydir", "*.incr.aof")))(t)
	require.Len(t, files, 1)
	info := must.Get(os.Stat(files[0]))(t)
	require.NoError(t, os.Truncate(files[0], int64(float64(info.Size())*r.random(0.4, 1))))
	require.NoError(t, r.Redis.Restart(t.Context()))
}

// exhaustMemory leaves Redis no memory for 5 s. Redis then refuses scripts that reserve, and still
// runs scripts that release.
func exhaustMemory(t *testing.T, r *run) {
	master := r.masterClient(t)
	info := must.Get(master.Info(t.Context(), "memory").Result())(t)
	var used int64
	for line := range strings.Lines(info) {
		_, _ = fmt.Sscanf(line, "used_memory:%d", &used)
	}
	require.NoError(t, master.ConfigSet(t.Context(), "maxmemory", fmt.Sprint(used-1<<16)).Err())
	time.Sleep(5 * time.Second)
	require.NoError(t, master.ConfigSet(t.Context(), "maxmemory", "0").Err())
}

// deleteRebuildLocks deletes the lock of the rebuild again and again, so that both consumers
// rebuild the sale at the same time.
func deleteRebuildLocks(t *testing.T, r *run) {
	flushAll(t, r)
	for began := time.Now(); time.Since(began) < 4*time.Second; time.Sleep(50 * time.Millisecond) {
		require.NoError(t, r.redis.Del(t.Context(), installation.SaleKey(r.goods)+":rebuild").Err())
	}
}

// pausePublisher suspends an API, with its unpublished reservations, until a new epoch has begun.
// It holds back the message of one more order until its buyer was answered that the order failed.
func pausePublisher(t *testing.T, r *run) {
	epoch := must.Get(r.ledger(t))(t).Epoch
	require.NoError(t, r.APIs[1].Pause())
	killRedis(t, r)
	r.awaitEpoch(t, r.goods, epoch+1, time.Now().Add(patience))
	late := r.awaitLostOrder(t, 1<<40)
	require.NoError(t, r.APIs[1].Resume())
	r.publish(t, r.goodsID(t), late)
}
