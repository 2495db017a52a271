package bench

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/app/connect"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/servers"
)

const (
	// mostShards is how many redis-servers there are apart, clusterMasters how many in a cluster, and eachLap how many buyers
	// reserve in a lap.
	mostShards     = 8
	clusterMasters = 4
	eachLap        = 1 << 15
	// wantedOfFour is how many times the reservations of one shard four must take.
	wantedOfFour = 2.5
)

// split is one way to lay out a sale: its stock in so many buckets on so many shards, reserved in groups of a size. The shards
// are servers that know nothing of each other, so that one stands for a cluster of any size; or a real Redis Cluster.
type split struct {
	shards, buckets, size int
	cluster               bool // of clusterMasters
}

// splits are laid beside the first of their list, a sale that is whole. A node where 256 people wait at once has a quarter of
// them for each of four buckets: that is the last of a list.
var splits = [][]split{
	{
		{shards: 1, buckets: 1, size: 256},
		{shards: 2, buckets: 2, size: 256},
		{shards: 4, buckets: 4, size: 256},
		{shards: 4, buckets: 4, size: 256, cluster: true},
		{shards: 8, buckets: 8, size: 256},
		{shards: 4, buckets: 16, size: 256},
		{shards: 1, buckets: 4, size: 256},
		{shards: 4, buckets: 4, size: 64},
	},
	{
		{shards: 1, buckets: 1, size: 16},
		{shards: 2, buckets: 2, size: 16},
		{shards: 4, buckets: 4, size: 16},
		{shards: 8, buckets: 8, size: 16},
		{shards: 4, buckets: 4, size: 4},
	},
}

// BenchmarkShards is how many reservations a sale takes before the busiest of its shards is at its end: reservations for
// each second of that Redis' processor, by the number of shards. The machine has fewer processors than there are
// shards, so the time on the wall would say nothing of them. Every lap is a sale of its own, with the slots that chance gives it.
func BenchmarkShards(b *testing.B) {
	apart, cluster := newFleet(b), newCluster(b)
	for _, list := range splits {
		b.Run(fmt.Sprintf("groups-of-%d", list[0].size), func(b *testing.B) {
			yields := make([][]float64, len(list))
			for b.Loop() {
				for i, s := range list {
					f := apart
					if s.cluster {
						f = cluster
					}
					yields[i] = append(yields[i], f.yield(b, s))
				}
			}
			b.ReportMetric(0, "ns/op") // of a round: it says nothing
			for i, s := range list {
				tellSplit(b, s, list[0], yields[i], yields[0])
			}
		})
	}
}

// tellSplit tells a split's yield beside that of the sale that is whole; each round's pair gives a ratio.
func tellSplit(b *testing.B, s, first split, yields, whole []float64) {
	b.Helper()
	ratios := make([]float64, len(yields))
	for i := range yields {
		ratios[i] = yields[i] / whole[i]
	}
	ratio, wanted := median(ratios), "–"
	where := "shards"
	if s.cluster {
		where = "masters of a Redis Cluster"
	}
	b.ReportMetric(ratio, dashed(fmt.Sprintf("of-one/%d-on-%d-%s-by-%d", s.buckets, s.shards, where, s.size)))
	if s.shards == 4 && s.buckets == 4 && s.size == first.size {
		wanted = fmt.Sprintf("≥ %.1f × one shard", wantedOfFour)
		require.GreaterOrEqual(b, ratio, wantedOfFour, "four shards do not carry enough: %v", ratios)
	}
	results.tell(fmt.Sprintf("reserve on %d %s, buckets %d, groups of %d", s.shards, where, s.buckets, s.size), wanted,
		"%s reservations for each processor second of the busiest Redis; %.2f × one shard", thousands(median(yields)), ratio)
}

// fleet is redis-servers among which the buckets of a sale lie.
type fleet struct {
	servers []*redis.Client
	at      func(bucket int64, shards int) redis.UniversalClient // who reaches a bucket's keys
}

// noRewrite keeps a Redis from rewriting its append-only file, which comes when it will and costs what it will.
const noRewrite = "auto-aof-rewrite-percentage 0"

// newFleet is servers apart, each with what a master of a Redis Cluster of equal ranges of slots would have.
func newFleet(b *testing.B) fleet {
	b.Helper()
	var f fleet
	for range mostShards {
		f.join(b, servers.Redis(b, servers.WithRedisConf(noRewrite)))
	}
	f.at = func(bucket int64, shards int) redis.UniversalClient { return f.servers[shardOf(bucket, shards)] }
	return f
}

// newCluster is a real one of clusterMasters, reached as the programs reach it.
func newCluster(b *testing.B) fleet {
	b.Helper()
	nodes := servers.RedisCluster(b, clusterMasters, 0, servers.WithNodeConf(noRewrite))
	client := connect.Redis(nodes.Addrs(), "")
	b.Cleanup(func() { _ = client.Close() })
	f := fleet{at: func(int64, int) redis.UniversalClient { return client }}
	for _, node := range nodes.Nodes {
		f.join(b, node)
	}
	return f
}

func (f *fleet) join(b *testing.B, server *servers.RedisServer) {
	b.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	b.Cleanup(func() { _ = client.Close() })
	f.servers = append(f.servers, client)
}

// yield lays out a sale, has a lap's buyers reserve, and returns how many of them each processor second of the busiest shard
// was good for.
func (f fleet) yield(b *testing.B, s split) float64 {
	b.Helper()
	goods := seckill.NewGoodsID(time.Now(), s.buckets)
	shelves, by := make(map[int64]shelf), crowds(goods)
	for bucket, crowd := range by {
		shelves[bucket] = newShelf(b, f.at(bucket, s.shards), bucket)
		for group := range slices.Chunk(crowd, s.size) {
			shelves[bucket].issue(b, group)
		}
	}
	before := f.spent(b)
	var all errgroup.Group
	for bucket, crowd := range by { // side by side
		all.Go(func() error { return shelves[bucket].reserveAll(b.Context(), crowd, s.size) })
	}
	require.NoError(b, all.Wait())
	busiest := 0.0
	for i, spent := range f.spent(b) {
		busiest = max(busiest, spent-before[i])
	}
	f.clear(b)
	return eachLap / busiest
}

// crowds are a lap's buyers, by the bucket that is theirs.
func crowds(goods int64) map[int64][]seckill.Reservation {
	by := make(map[int64][]seckill.Reservation)
	for range eachLap {
		r := wish()
		bucket := seckill.BucketOf(goods, r.BuyerID)
		by[bucket] = append(by[bucket], r)
	}
	return by
}

// shardOf is the master that has a bucket's slot.
func shardOf(bucket int64, shards int) int { return seckill.Slot(bucket) * shards / 16384 }

// reserveAll reserves for a crowd in groups, several at a time.
func (s shelf) reserveAll(ctx context.Context, crowd []seckill.Reservation, size int) error {
	var groups errgroup.Group
	groups.SetLimit(callers)
	for group := range slices.Chunk(crowd, size) {
		groups.Go(func() error { return s.reserve(ctx, group) })
	}
	return groups.Wait()
}

// spent is the processor seconds of each server so far, by its own word, which is finer than the kernel's ticks.
func (f fleet) spent(b *testing.B) []float64 {
	b.Helper()
	list := make([]float64, len(f.servers))
	for i, c := range f.servers {
		info, err := c.Info(b.Context(), "cpu").Result()
		require.NoError(b, err)
		list[i] = infoSeconds(b, info, "used_cpu_user:") + infoSeconds(b, info, "used_cpu_sys:")
	}
	return list
}

func infoSeconds(b *testing.B, info, name string) (seconds float64) {
	b.Helper()
	_, rest, found := strings.Cut(info, name)
	require.True(b, found, name)
	_, err := fmt.Fscan(bytes.NewBufferString(rest), &seconds)
	require.NoError(b, err)
	return seconds
}

// clear empties all servers, so that each lap finds the same.
func (f fleet) clear(b *testing.B) {
	b.Helper()
	for _, c := range f.servers {
		require.NoError(b, c.FlushAll(b.Context()).Err())
	}
}

// TestNoShardCarriesMuchMoreThanItsShare is the part of the promise that is arithmetic: where each bucket goes, and each buyer.
// Whatever a reservation costs, four shards take so many times as many as one if none of them has more of the buyers than this.
func TestNoShardCarriesMuchMoreThanItsShare(t *testing.T) {
	for _, s := range []split{{shards: 2, buckets: 2}, {shards: 4, buckets: 4}, {shards: 4, buckets: 8}, {shards: 4, buckets: 64}} {
		for sale := range 20 {
			goods := seckill.NewGoodsID(time.Now(), s.buckets)
			carried := make([]int, s.shards)
			for buyer := range int64(eachLap) {
				carried[shardOf(seckill.BucketOf(goods, int64(sale)<<32+buyer+1), s.shards)]++
			}
			times := float64(eachLap) / float64(slices.Max(carried))
			require.Greater(t, times, wantedOfFour*float64(s.shards)/4, "%+v: buyers by shard %v", s, carried)
		}
	}
}
