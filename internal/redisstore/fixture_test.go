package redisstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

var env = servers.NewSuite()

func TestMain(m *testing.M) { goleak.VerifyTestMain(env.Around(m)) }

// systems are a Redis server, a cluster of three masters, and the Redis that standalone embeds.
// Each open function returns a fixture on an empty system.
var systems = []struct {
	name string
	open func(*testing.T) fixture
}{
	{"redis-server", func(t *testing.T) fixture {
		s := open(t, env.Redis(t).Addr(), "")
		require.NoError(t, s.client.FlushAll(t.Context()).Err())
		return s
	}},
	{"redis-cluster", func(t *testing.T) fixture {
		cluster := env.RedisCluster(t)
		require.NoError(t, cluster.FlushAll(t.Context()))
		return fixture{New(newClient(t, cluster.Addrs()...), Options{}), t}
	}},
	{"miniredis", func(t *testing.T) fixture {
		return open(t, miniredis.RunT(t).Addr(), "a token")
	}},
}

// TestStore runs the methods of fixture that take a *testing.T on every system. Run one with
// -run TestStore/miniredis/TestReserve_UsesRedisClock.
func TestStore(t *testing.T) {
	for _, system := range systems {
		for method := range reflect.TypeFor[fixture]().Methods() {
			if test, ok := method.Func.Interface().(func(fixture, *testing.T)); ok {
				t.Run(system.name+"/"+method.Name, func(t *testing.T) { test(system.open(t), t) })
			}
		}
	}
}

// fixture is a store and the helpers that tests use on it.
type fixture struct {
	*Store
	t *testing.T
}

func open(t *testing.T, addr, lease string) fixture {
	t.Helper()
	return fixture{New(newClient(t, addr), Options{Lease: lease}), t}
}

func newClient(t *testing.T, addrs ...string) redis.UniversalClient {
	t.Helper()
	client := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: addrs})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

const goods = 42

// onSale returns the first epoch of a sale that sells now, with this number of units.
func onSale(units, limit int64) seckill.Sale {
	now := time.Now().UTC().Truncate(time.Millisecond)
	return seckill.Sale{
		GoodsID: goods, MerchantID: "1", Title: "tea", Price: 250, Total: units, Stock: units,
		Epoch: 1, PerBuyerLimit: limit, MaxPerBuyerLimit: limit, StartAt: now.Add(-time.Hour),
		EndAt: now.Add(time.Hour), Status: seckill.Exposed, Rate: seckill.DefaultRate(),
		CreatedAt: now, UpdatedAt: now,
	}
}

// onSaleIn returns onSale in another epoch.
func onSaleIn(epoch, units, limit int64) seckill.Sale {
	sale := onSale(units, limit)
	sale.Epoch = epoch
	return sale
}

// load begins an epoch behind a shut gate, as a rebuild does.
func (s fixture) load(sale seckill.Sale, orders ...order.Held) {
	s.t.Helper()
	must.Get(s.Shut(s.t.Context(), sale.GoodsID, sale.Epoch-1))(s.t)
	require.True(s.t, must.Get(s.loadPages(sale, pagesOf(orders...)))(s.t))
}

// loadPages is Load of a sale that does not change meanwhile.
func (s fixture) loadPages(
	sale seckill.Sale, pages iter.Seq2[[]order.Held, error],
) (bool, error) {
	return s.Load(s.t.Context(), sale.GoodsID, pages, func() (seckill.Sale, error) {
		return sale, nil
	})
}

// pagesOf returns small pages, so that most buyers' orders are in several of them.
func pagesOf(orders ...order.Held) iter.Seq2[[]order.Held, error] {
	return func(yield func([]order.Held, error) bool) {
		for page := range slices.Chunk(orders, 2) {
			if !yield(page, nil) {
				return
			}
		}
	}
}

// reservationOf asks for units under number n, whose path is valid.
func reservationOf(n int, buyer, quantity int64) reservation.Reservation {
	return reservation.Reservation{
		OrderLine: reservation.OrderLine{
			OrderSn: fmt.Sprintf("sn%d", n), BuyerID: fmt.Sprint(buyer),
			Quantity: quantity, Epoch: 1, Name: "李雷",
		},
		PathEnd: time.Now().Add(time.Minute),
	}
}

func (s fixture) reserve(rs ...reservation.Reservation) []reservation.Verdict {
	s.t.Helper()
	return must.Get(s.reserveIn(1, rs...))(s.t).Verdicts
}

func (s fixture) reserveIn(epoch int64, rs ...reservation.Reservation) (reservation.Result, error) {
	return s.Reserve(s.t.Context(), goods, epoch, rs)
}

// gateOf requires that err is a GateError and returns it.
func gateOf(t *testing.T, err error) *seckill.GateError {
	t.Helper()
	gate, ok := errors.AsType[*seckill.GateError](err)
	require.True(t, ok, "%v", err)
	return gate
}

func (s fixture) view() seckill.View {
	s.t.Helper()
	v := must.Get(s.View(s.t.Context(), goods))(s.t)
	require.Equal(s.t, v.Total, v.Available+v.Pending+v.Sold, "the ledger's equation")
	return v
}

func (s fixture) requireUnits(available, pending, sold int64) {
	s.t.Helper()
	v := s.view()
	require.Equal(s.t, []int64{available, pending, sold}, []int64{v.Available, v.Pending, v.Sold})
}

func (s fixture) pendingSns() []string {
	s.t.Helper()
	sns := []string{}
	for page, err := range s.PendingPages(s.t.Context(), goods, 1000) {
		require.NoError(s.t, err)
		sns = append(sns, order.Numbers(page)...)
	}
	return sns
}

func (s fixture) release(moves ...order.StockMove) []order.MoveResult {
	s.t.Helper()
	return must.Get(s.Release(context.Background(), goods, moves))(s.t)
}
