package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"flashsale.dev/seckill/internal/app/connect"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// callers send groups at the same time, so that Redis is what limits and not the way to it; callsEach is how many each
// prepares at a time.
const (
	callers   = 4
	callsEach = 8
)

// BenchmarkReserve is the reserve script at groups of 1, 16 and 256, beside a script that does nothing with the same
// arguments, and one that makes the same writes without a question asked. The processor time is Redis'.
func BenchmarkReserve(b *testing.B) {
	server := env.Redis(b)
	client := connect.Redis([]string{server.Addr()}, "")
	b.Cleanup(func() { _ = client.Close() })
	cpu := processorTime(server.Pid())
	for i, size := range []int{1, 16, 256} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			ours := newRedisStore(b, client, int64(2*i+1))
			bare, empty := bareStore{client, int64(2*i + 2), bareScript}, bareStore{client, 0, emptyScript}
			duel(b, fmt.Sprintf("reserve, groups of %d", size), "reservations",
				contestant{"ours", func() lap { return trips(b, size, wishes, ours.reserve, cpu) }},
				contestant{"empty EVALSHA", func() lap { return trips(b, size, wishes, empty.take, cpu) }},
				contestant{"EVALSHA of five bare commands", func() lap { return trips(b, size, wishes, bare.take, cpu) }})
		})
	}
}

// trips has the callers make calls, each for a group.
func trips(b *testing.B, size int, prepare func(b *testing.B, size int) []reservation.Reservation,
	call func(context.Context, []reservation.Reservation) error, cpu func() time.Duration,
) lap {
	b.Helper()
	ready := func() [][]reservation.Reservation {
		groups := make([][]reservation.Reservation, callers*callsEach)
		for i := range groups {
			groups[i] = prepare(b, size)
		}
		return groups
	}
	return repeat(ready, func(groups [][]reservation.Reservation) int {
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

// redisStore is our store with one sale in it.
type redisStore struct {
	*redisstore.Store
	goodsID int64
}

func newRedisStore(b *testing.B, client redis.UniversalClient, goodsID int64) redisStore {
	b.Helper()
	s := redisStore{redisstore.New(client, redisstore.Options{MaxBacklogMillis: time.Hour.Milliseconds()}), goodsID}
	now := time.Now().UTC()
	_, err := s.Load(b.Context(), rebuild.Snapshot{Sale: seckill.Sale{
		GoodsID: goodsID, MerchantID: 1, Title: "tea", Price: 250, Total: seckill.MaxStock, Stock: seckill.MaxStock, Epoch: 1,
		PerBuyerLimit: 1, MaxPerBuyerLimit: 1, StartAt: now.Add(-time.Hour), EndAt: now.Add(time.Hour),
		Status: seckill.Exposed, Rate: seckill.DefaultRate(), CreatedAt: now, UpdatedAt: now,
	}})
	require.NoError(b, err)
	return s
}

func (s redisStore) reserve(ctx context.Context, group []reservation.Reservation) error {
	g, err := s.Reserve(ctx, s.goodsID, 1, group)
	if err != nil {
		return err
	}
	for _, v := range g.Verdicts {
		if v.Code != reservation.Taken {
			return fmt.Errorf("a reservation was not taken: %w", v.Err())
		}
	}
	return nil
}

// wishes are reservations of buyers of whom nobody has heard.
func wishes(b *testing.B, size int) []reservation.Reservation {
	b.Helper()
	group := make([]reservation.Reservation, size)
	for i := range group {
		group[i] = wish()
	}
	return group
}

func wish() reservation.Reservation {
	n := serial.Add(1)
	return reservation.Reservation{PathEnd: time.Now().Add(time.Minute), OrderLine: reservation.OrderLine{
		OrderSn: fmt.Sprintf("%035d", n), BuyerID: n, Quantity: 1, Epoch: 1, Name: "买家", Phone: "+8613800000000",
	}}
}

// bareStore writes what the reserve script writes, and judges nothing.
type bareStore struct {
	client  redis.UniversalClient
	goodsID int64
	script  *redis.Script
}

// emptyScript is what it costs to bring the arguments to Redis and run anything at all.
var emptyScript = redis.NewScript(`return ''`)

var bareScript = redis.NewScript(`
local n = tonumber(ARGV[1])
redis.call('HINCRBY', KEYS[1], 'avail', -n)
redis.call('HINCRBY', KEYS[1], 'pend', n)
redis.call('HSET', KEYS[2], unpack(ARGV, 3, 2 + 2 * n))
redis.call('HSET', KEYS[3], unpack(ARGV, 3 + 2 * n))
return redis.call('XADD', KEYS[4], '*', 'b', ARGV[2])`)

func (s bareStore) take(ctx context.Context, group []reservation.Reservation) error {
	_, _, err := s.takeGroup(ctx, group)
	return err
}

// takeGroup returns the outbox entry's id and its body.
func (s bareStore) takeGroup(ctx context.Context, group []reservation.Reservation) (id string, body []byte, err error) {
	key, now := fmt.Sprintf("sk:{%d}", s.goodsID), time.Now().UnixMilli()
	buyers, pending := make([]any, 0, 2*len(group)), make([]any, 0, 2*len(group))
	lines := make([]reservation.OrderLine, len(group))
	for i, r := range group {
		entry, err := json.Marshal(r.OrderLine)
		if err != nil {
			return "", nil, err
		}
		lines[i] = r.OrderLine
		buyers = append(buyers, r.BuyerID, "1 "+r.OrderSn+":1")
		pending = append(pending, r.OrderSn, fmt.Sprintf("%d:1:%s", now, entry))
	}
	if body, err = json.Marshal(lines); err != nil {
		return "", nil, err
	}
	args := append(append([]any{len(group), body}, buyers...), pending...)
	id, err = s.script.Run(ctx, s.client, []string{key, key + ":buyers", key + ":pending", key + ":outbox"}, args...).Text()
	return id, body, err
}
