package bench

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/app/connect"
	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
)

// callers send groups at the same time, so that Redis is the limit and not the round trip. Each
// prepares callsEach groups at a time.
const (
	callers   = 4
	callsEach = 8
)

// BenchmarkReserve measures the reserve script at groups of 1, 16 and 256. One floor is a script
// that only takes the same arguments. The other makes the same writes without a check. The
// processor time is that of Redis.
func BenchmarkReserve(b *testing.B) {
	client, cpu := newRedis(b)
	for i, size := range []int{1, 16, 256} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			ours := newSaleStore(b, client, int64(2*i+1), seckill.MaxStock)
			floor := func(name string, s bareStore) contender {
				return contender{name, func() measurement {
					return calls(b, size, newBuyers, s.take, cpu)
				}}
			}
			compare(b, fmt.Sprintf("reserve, groups of %d", size), "reservations",
				contender{"ours", func() measurement {
					return calls(b, size, newBuyers, ours.reserve, cpu)
				}},
				floor("empty EVALSHA", bareStore{client, 0, emptyScript}),
				floor("EVALSHA of five bare commands",
					bareStore{client, int64(2*i + 2), bareScript}))
		})
	}
}

// BenchmarkReserveLater measures the reserve script in a sale of which a million paths were used
// and their orders written. It stands beside a new sale, and beside the bare commands with as many
// buyers: Redis itself is slower in a large hash.
func BenchmarkReserveLater(b *testing.B) {
	client, cpu := newRedis(b)
	old, bare, last := newSaleStore(b, client, 1, seckill.MaxStock), bareStore{client, 2, bareScript},
		int64(2)
	outbox, sns := old.sell(b, millionBuyers)
	old.written(b, outbox, sns)
	for range millionBuyers / reservation.MaxBatch {
		require.NoError(b, bare.take(b.Context(), newBuyers(b, reservation.MaxBatch)))
	}
	k := bare.key()
	require.NoError(b, client.Unlink(b.Context(), k+":pending", k+":outbox").Err())
	for _, size := range []int{1, 16, 256} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			measure := func(reserve func(context.Context, group) error) measurement {
				return calls(b, size, newBuyers, reserve, cpu)
			}
			compare(b, fmt.Sprintf("reserve after a million used paths, groups of %d", size),
				"reservations",
				contender{"ours", func() measurement { return measure(old.reserve) }},
				contender{"a new sale", func() measurement {
					last++
					return measure(newSaleStore(b, client, last, seckill.MaxStock).reserve)
				}},
				contender{"five bare commands after as many", func() measurement {
					return measure(bare.take)
				}})
		})
	}
}

type group = []reservation.Reservation

// calls lets the callers make calls, each for a group.
func calls(
	b *testing.B, size int, prepare func(*testing.B, int) group,
	call func(context.Context, group) error, cpu processes,
) measurement {
	b.Helper()
	ready := func() []group {
		groups := make([]group, callers*callsEach)
		for i := range groups {
			groups[i] = prepare(b, size)
		}
		return groups
	}
	return repeat(ready, func(groups []group) int {
		var all errgroup.Group
		for caller := range callers {
			all.Go(func() error {
				for _, g := range groups[caller*callsEach : (caller+1)*callsEach] {
					if err := call(b.Context(), g); err != nil {
						return err
					}
				}
				return nil
			})
		}
		require.NoError(b, all.Wait())
		return size * len(groups)
	}, cpu)
}

// saleStore is our store with one sale in it.
type saleStore struct {
	*redisstore.Store
	goodsID int64
}

// newRedis starts a Redis, and returns a client of it and its processor time.
func newRedis(b *testing.B) (redis.UniversalClient, processes) {
	server := env.Redis(b)
	client := connect.RedisOf(config.Redis{Addrs: []string{server.Addr()}})
	b.Cleanup(func() { _ = client.Close() })
	return client, processes{redisPart: {server.Pid()}}
}

func newSaleStore(
	b *testing.B, client redis.UniversalClient, goodsID, stock int64,
) saleStore {
	b.Helper()
	return newSaleStoreAt(b, client, goodsID, stock, time.Now().Add(-time.Hour))
}

// newSaleStoreAt is newSaleStore with the start of the sale, which lasts two hours.
func newSaleStoreAt(
	b *testing.B, client redis.UniversalClient, goodsID, stock int64, start time.Time,
) saleStore {
	b.Helper()
	options := redisstore.Options{MaxBacklogMillis: time.Hour.Milliseconds()}
	s := saleStore{redisstore.New(client, options), goodsID}
	now := time.Now().UTC()
	sale := seckill.Sale{
		GoodsID: goodsID, MerchantID: "1", Title: "tea", Price: 250, Total: stock,
		Stock: stock, Epoch: 1, PerBuyerLimit: 1, MaxPerBuyerLimit: 1,
		StartAt: start.UTC(), EndAt: start.UTC().Add(2 * time.Hour), Status: seckill.Exposed,
		Rate: seckill.DefaultRate(), CreatedAt: now, UpdatedAt: now,
	}
	must.Get(s.Load(b.Context(), goodsID, func(func([]order.Held, error) bool) {},
		func() (seckill.Sale, error) { return sale, nil }))(b)
	return s
}

func (s saleStore) reserve(ctx context.Context, group group) error {
	_, err := s.reserveAll(ctx, group)
	return err
}

// reserveAll returns the outbox entry of a group of which every reservation is taken.
func (s saleStore) reserveAll(ctx context.Context, group group) (outboxID string, err error) {
	g, err := s.Reserve(ctx, s.goodsID, 1, group)
	for _, v := range g.Verdicts {
		if err == nil && v.Code != reservation.Taken {
			err = fmt.Errorf("a reservation was not taken: %w", v.Err())
		}
	}
	return g.OutboxID, err
}

// newBuyers are reservations of buyers with a valid path.
func newBuyers(_ *testing.B, size int) group {
	group := make(group, size)
	for i := range group {
		n := serial.Add(1)
		group[i] = reservation.Reservation{
			PathEnd: time.Now().Add(time.Minute),
			OrderLine: reservation.OrderLine{
				OrderSn: fmt.Sprintf("%035d", n), BuyerID: fmt.Sprint(n), Quantity: 1, Epoch: 1,
				Name: "买家", Phone: "+8613800000000",
			},
		}
	}
	return group
}

// bareStore writes what the reserve script writes, and checks nothing.
type bareStore struct {
	client  redis.UniversalClient
	goodsID int64
	script  *redis.Script
}

// emptyScript has the cost of the arguments' way to Redis, and of running any script.
var emptyScript = redis.NewScript(`return ''`)

var bareScript = redis.NewScript(`
local n = tonumber(ARGV[1])
redis.call('HINCRBY', KEYS[1], 'avail', -n)
redis.call('HINCRBY', KEYS[1], 'pend', n)
redis.call('HSET', KEYS[2], unpack(ARGV, 3, 2 + 2 * n))
redis.call('HSET', KEYS[3], unpack(ARGV, 3 + 2 * n))
return redis.call('XADD', KEYS[4], '*', 'b', ARGV[2])`)

func (s bareStore) key() string { return fmt.Sprintf("sk:{%d}", s.goodsID) }

func (s bareStore) take(ctx context.Context, group group) error {
	_, err := s.takeGroup(ctx, group)
	return err
}

// takeGroup returns the outbox entry's body: a line of tab-separated fields an order.
func (s bareStore) takeGroup(ctx context.Context, group group) (body []byte, err error) {
	key, now := s.key(), strconv.FormatInt(time.Now().UnixMilli(), 10)
	args := make([]any, 2+4*len(group))
	buyers, pending := args[2:2+2*len(group)], args[2+2*len(group):]
	for i, r := range group {
		start := len(body)
		body = append(append(body, r.OrderSn...), '\t')
		body = append(append(body, r.BuyerID...), '\t')
		body = append(strconv.AppendInt(body, r.Quantity, 10), '\t')
		body = append(append(append(body, r.Name...), '\t'), r.Phone...)
		buyers[2*i], buyers[2*i+1] = r.BuyerID, "1 "+r.OrderSn+":1"
		pending[2*i], pending[2*i+1] = r.OrderSn, now+":1:"+string(body[start:])
		body = append(body, '\n')
	}
	args[0], args[1] = len(group), body
	keys := []string{key, key + ":buyers", key + ":pending", key + ":outbox"}
	return body, s.script.Run(ctx, s.client, keys, args...).Err()
}
