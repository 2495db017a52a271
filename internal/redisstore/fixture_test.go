package redisstore

import (
	"context"
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

var env = servers.NewSuite()

func TestMain(m *testing.M) { goleak.VerifyTestMain(env.Around(m)) }

// eachServer runs a test on Redis, on a cluster of three masters, and on the Redis that standalone
// embeds.
func eachServer(t *testing.T, test func(t *testing.T, s *Store)) {
	t.Run("redis-server", func(t *testing.T) { test(t, open(t, servers.Redis(t).Addr(), "")) })
	t.Run("redis-cluster", func(t *testing.T) {
		cluster := env.RedisCluster(t)
		require.NoError(t, cluster.FlushAll(t.Context()))
		test(t, New(clusterClient(t, cluster), Options{}))
	})
	t.Run("miniredis", func(t *testing.T) { test(t, open(t, miniredis.RunT(t).Addr(), "a token")) })
}

func open(t *testing.T, addr, lease string) *Store {
	t.Helper()
	client := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{addr}})
	t.Cleanup(func() { _ = client.Close() })
	return New(client, Options{Lease: lease})
}

func clusterClient(t *testing.T, cluster *servers.RedisNodes) redis.UniversalClient {
	t.Helper()
	client := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: cluster.Addrs()})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

const goods = 42

// onSale is a sale that is on, with so many units, as its first epoch.
func onSale(units, limit int64) rebuild.Snapshot {
	now := time.Now().UTC().Truncate(time.Millisecond)
	return rebuild.Snapshot{Sale: seckill.Sale{
		GoodsID: goods, MerchantID: 1, Title: "tea", Price: 250, Total: units, Stock: units,
		Epoch: 1, PerBuyerLimit: limit, MaxPerBuyerLimit: limit, StartAt: now.Add(-time.Hour),
		EndAt: now.Add(time.Hour), Status: seckill.Exposed, Rate: seckill.DefaultRate(),
		CreatedAt: now, UpdatedAt: now,
	}}
}

// load begins an epoch, as a rebuild does: behind a shut gate.
func load(t *testing.T, s *Store, snap rebuild.Snapshot) {
	t.Helper()
	require.NoError(t, s.Shut(t.Context(), snap.GoodsID, snap.Epoch-1))
	require.True(t, must.Get(s.Load(t.Context(), snap))(t))
}

func path(n int) string {
	return fmt.Sprintf("%032s", hex.EncodeToString(fmt.Appendf(nil, "%d", n)))
}

// issuePath makes a reservation of a buyer for whom path n has been issued.
func issuePath(t *testing.T, s *Store, n int, buyer, quantity int64) reservation.Reservation {
	t.Helper()
	must.Get(s.IssuePaths(t.Context(), goods, 1, time.Minute,
		[]reservation.PathGrant{{Path: path(n), BuyerID: buyer}}))(t)
	return reservationOf(n, buyer, quantity)
}

func reservationOf(n int, buyer, quantity int64) reservation.Reservation {
	sn := fmt.Sprintf("sn%d", n)
	return reservation.Reservation{
		OrderLine: reservation.OrderLine{
			OrderSn: sn, BuyerID: buyer, Quantity: quantity, Name: "李雷",
		},
		Path: path(n),
	}
}

func reserve(t *testing.T, s *Store, rs ...reservation.Reservation) []reservation.Verdict {
	t.Helper()
	g := must.Get(s.Reserve(t.Context(), goods, 1, rs))(t)
	return g.Verdicts
}

func view(t *testing.T, s *Store) seckill.View {
	t.Helper()
	v := must.Get(s.View(t.Context(), goods))(t)
	require.Equal(t, v.Total, v.Available+v.Pending+v.Sold, "the ledger's equation")
	return v
}

func pendingSns(t *testing.T, s *Store) []string {
	t.Helper()
	page, _, err := s.PendingPage(t.Context(), goods, 0, 1000)
	require.NoError(t, err)
	sns := []string{}
	for _, p := range page {
		sns = append(sns, p.OrderSn)
	}
	return sns
}

func release(t *testing.T, s *Store, moves ...order.StockMove) []order.MoveResult {
	t.Helper()
	results := must.Get(s.Release(context.Background(), goods, moves))(t)
	return results
}
