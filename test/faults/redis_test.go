package faults

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/test/faults/check"
)

func redisHarms() []harm {
	once := func(do func(t *testing.T, s *scene)) func(*testing.T, *scene) {
		return func(t *testing.T, s *scene) {
			s.until(s.between(0.1, 0.7))
			do(t, s)
		}
	}
	return []harm{
		{name: "redis-killed", do: once(killRedis)},
		{name: "redis-lost-a-second", do: once(loseASecond)},
		{name: "redis-emptied", do: once(func(t *testing.T, s *scene) { require.NoError(t, s.keeper(t).RestartEmpty(t.Context())) })},
		{name: "redis-flushall", do: once(func(t *testing.T, s *scene) { require.NoError(t, s.keeperClient(t).FlushAll(t.Context()).Err()) })},
		{name: "redis-paused", do: once(func(t *testing.T, s *scene) { pause(t, s, s.keeper(t), 5*time.Second) })},
		{name: "redis-paused-over-the-end", ends: 3 * time.Second, over: 12 * time.Second, do: func(t *testing.T, s *scene) {
			s.until(s.between(0.3, 0.6))
			pause(t, s, s.keeper(t), 3*time.Second)
		}},
		{name: "redis-out-of-memory", do: once(starveRedis)},
		{name: "redis-killed-again", do: once(func(t *testing.T, s *scene) { // while the first rebuild is under way
			for range 3 {
				killRedis(t, s)
				s.lasts(time.Duration(s.between(0, float64(2*time.Second))))
			}
		})},
		{name: "redis-killed-many-sales", do: killUnderManySales},
		{name: "two-rebuilders", do: once(twoRebuilders)},
		{name: "sleeping-publisher", do: once(sleepThroughRebuild), limit: 1, expect: check.Expect{MayBreak: true, DeadLetters: 1}},
	}
}

func killRedis(t *testing.T, s *scene) {
	t.Helper()
	keeper := s.keeper(t)
	require.NoError(t, keeper.Kill())
	require.NoError(t, keeper.Restart(t.Context()))
}

// killUnderManySales kills Redis when there are thirty more sales, all of which must be open again in good time; one of them
// has been closed.
func killUnderManySales(t *testing.T, s *scene) {
	t.Helper()
	var others []string
	for range 30 {
		others = append(others, s.PutUp(t, 10, 1))
	}
	merchant := s.Merchant(t)
	require.NoError(t, merchant.Do(t.Context(), http.MethodPost, "/admin/sales/"+others[0]+"/close", nil, &struct{}{}))
	s.until(s.between(0.1, 0.7))
	for _, server := range s.masters(t) {
		require.NoError(t, server.RestartEmpty(t.Context()))
	}
	began := time.Now()
	for _, goods := range others {
		for {
			l, err := merchant.Ledger(t.Context(), goods)
			if err == nil && l.Epoch == 2 && l.Balanced {
				break
			}
			require.Less(t, time.Since(began), 15*time.Second, "goods %s: %+v %v", goods, l, err)
			s.lasts(20 * time.Millisecond)
		}
	}
	t.Logf("30 more sales were open again in %s", time.Since(began).Round(time.Millisecond))
}

// masters are all that keep sales.
func (s *scene) masters(t *testing.T) []*servers.RedisServer {
	t.Helper()
	if s.Cluster == nil {
		return []*servers.RedisServer{s.Redis}
	}
	masters, err := s.Cluster.Masters(t.Context())
	require.NoError(t, err)
	return masters
}

// loseASecond takes away the end of Redis' append-only file while it is dead. A killed redis-server loses nothing (what it
// wrote is the kernel's); a machine that loses power loses up to a second under appendfsync everysec.
func loseASecond(t *testing.T, s *scene) {
	t.Helper()
	dir, err := s.keeperClient(t).ConfigGet(t.Context(), "dir").Result()
	require.NoError(t, err)
	require.NoError(t, s.Redis.Kill())
	files, err := filepath.Glob(filepath.Join(dir["dir"], "appendonlydir", "*.incr.aof"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	info, err := os.Stat(files[0])
	require.NoError(t, err)
	require.NoError(t, os.Truncate(files[0], int64(float64(info.Size())*s.between(0.4, 1))))
	require.NoError(t, s.Redis.Restart(t.Context()))
}

// starveRedis leaves Redis no memory for a while: scripts that take are refused, those that give back work on.
func starveRedis(t *testing.T, s *scene) {
	t.Helper()
	keeper := s.keeperClient(t)
	info, err := keeper.Info(t.Context(), "memory").Result()
	require.NoError(t, err)
	var used int64
	for line := range strings.Lines(info) {
		_, _ = fmt.Sscanf(line, "used_memory:%d", &used)
	}
	require.NoError(t, keeper.ConfigSet(t.Context(), "maxmemory", fmt.Sprint(used-1<<16)).Err())
	s.lasts(5 * time.Second)
	require.NoError(t, keeper.ConfigSet(t.Context(), "maxmemory", "0").Err())
}

// twoRebuilders takes the rebuilders' lock away again and again, so that both consumers rebuild at once.
func twoRebuilders(t *testing.T, s *scene) {
	t.Helper()
	require.NoError(t, s.keeperClient(t).FlushAll(t.Context()).Err())
	for began := time.Now(); time.Since(began) < 4*time.Second; s.lasts(50 * time.Millisecond) {
		require.NoError(t, s.redis.Del(t.Context(), installation.SaleKey(s.goods)+":rebuild").Err())
	}
}

// sleepThroughRebuild has an API sleep, with what it took from Redis not published, until a new epoch has begun. One
// order's message is held back, as by such a publisher, until its buyer has been told that the order failed.
func sleepThroughRebuild(t *testing.T, s *scene) {
	t.Helper()
	require.NoError(t, s.APIs[1].Pause())
	killRedis(t, s)
	s.lasts(4 * time.Second)
	late := s.toldLost(t, 1<<40)
	require.NoError(t, s.APIs[1].Resume())
	s.publish(t, s.goodsID(t), late)
}
