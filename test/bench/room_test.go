package bench

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/waitingroom/admission"
)

// bareJoin stores a number for each buyer of a group, and checks nothing.
var bareJoin = redis.NewScript(`
local number = redis.call('HINCRBY', KEYS[1], 'next', #ARGV) - #ARGV
for i = 1, #ARGV do redis.call('HSET', KEYS[i + 1], ARGV[i], number + i) end
return number`)

// BenchmarkRoomJoin measures the join script at groups of 1, 16 and 256 before the start of a sale.
// Most buyers join then, and each group extends the digest.
func BenchmarkRoomJoin(b *testing.B) {
	client, cpu := newRedis(b)
	for i, size := range []int{1, 16, 256} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := newSaleStoreAt(b, client, int64(1001+2*i), seckill.MaxStock,
				time.Now().Add(time.Hour))
			room := must.Get(s.Room(b.Context(), s.goodsID))(b)
			must.Get(s.Prepare(b.Context(), s.goodsID, admission.Record{
				Lease: room.SaleLease, Limit: 1 << 40, DrawSize: admission.NotDrawn,
			}, ""))(b)
			join := func(ctx context.Context, g group) error {
				visits := make([]admission.Visit, len(g))
				for i, r := range g {
					visits[i].BuyerID = r.BuyerID
				}
				_, seats, err := s.Join(ctx, s.goodsID, admission.Join, visits)
				if err == nil && len(seats) != len(g) {
					err = fmt.Errorf("%d seats for %d buyers", len(seats), len(g))
				}
				return err
			}
			bare := func(ctx context.Context, g group) error {
				keys, args := []string{fmt.Sprintf("{%d}", s.goodsID+1)}, make([]any, len(g))
				for i, r := range g {
					args[i] = r.BuyerID
					keys = append(keys, fmt.Sprintf("{%d}:%d", s.goodsID+1, len(keys)%1024))
				}
				return bareJoin.Run(ctx, client, keys, args...).Err()
			}
			compare(b, fmt.Sprintf("join a waiting room, groups of %d", size), "joins",
				contender{"ours", func() measurement {
					return calls(b, size, newBuyers, join, cpu)
				}},
				contender{"EVALSHA that only numbers", func() measurement {
					return calls(b, size, newBuyers, bare, cpu)
				}})
		})
	}
}

// room puts up a sale that has a waiting room and starts in an hour.
func (f *fixture) room() (goods string) {
	now := time.Now().UTC().Truncate(time.Second)
	return must.Get(f.Merchant(f.b).PutUp(f.b.Context(), apiclient.NewSale{
		Title: "a line", Price: 1, Stock: 500, StartAt: now.Add(time.Hour),
		EndAt: now.Add(2 * time.Hour), Admission: string(seckill.ByWaitingRoom),
	}))(f.b)
}

// BenchmarkRoomJoins measures joins over HTTP. The floor program's purchases, which it groups too,
// are beside them.
func BenchmarkRoomJoins(b *testing.B) {
	c := newContest(b)
	join := func() measurement {
		target := "/sales/" + c.room() + "/waiting-room"
		requests := make([][]byte, boughtEach)
		for i := range requests {
			requests[i] = post(target, c.token(inOrder()))
		}
		return c.side("ours").answers(b, load{
			connections: 256, requests: requests, n: boughtEach, want: http.StatusOK,
		})
	}
	compare(b, "joins of a waiting room, 256 connections", "joins", contender{"ours", join},
		contender{"floor program, decrStock", func() measurement {
			return c.purchase(c.floor, 256)
		}})
}

// unpolledFor is how long the calls of Redis are counted without polls.
const unpolledFor = 5 * time.Second

// BenchmarkRoomPolls measures polls of a room's public status and of one's own place. The floor
// program writes the same bytes. The calls of Redis are those while our API is polled, beside those
// of the same installation without polls.
func BenchmarkRoomPolls(b *testing.B) {
	c := newContest(b)
	target := "/sales/" + c.room() + "/waiting-room"
	places := make([][]byte, refusedBuyers)
	for i := range places {
		id := inOrder()
		var place struct{ Ticket string }
		client := c.Buyer(b, id)
		require.NoError(b, client.Do(b.Context(), http.MethodPost, target, nil, &place))
		places[i] = get(target+"/me?ticket="+place.Ticket, c.token(id))
	}
	for _, poll := range []struct {
		name     string
		requests [][]byte
	}{{"status", [][]byte{get(target, "")}}, {"own place", places}} {
		c.run(poll.name, func(b *testing.B) {
			without := c.redisCallsDuring(func() { time.Sleep(unpolledFor) })
			var with []float64
			ours := c.side("ours")
			compare(b, "polls of a waiting room's "+poll.name+", 256 connections", "answers",
				contenders([]side{ours, c.floor}, func(s side) (m measurement) {
					calls := c.redisCallsDuring(func() {
						m = s.answers(b, load{
							connections: 256, requests: poll.requests, n: refusedEach,
							want: http.StatusOK,
						})
					})
					if s.name == ours.name {
						with = append(with, calls)
					}
					return m
				})...)
			results.note("Redis calls during polls of a room's "+poll.name, "as without polls",
				"%.0f a second, %.0f without polls", median(with), without)
		})
	}
}

// redisCallsDuring returns how many calls a second Redis has during some work.
func (f *fixture) redisCallsDuring(work func()) float64 {
	f.b.Helper()
	before, began := f.redisCalls(), time.Now()
	work()
	return float64(f.redisCalls()-before) / time.Since(began).Seconds()
}

// BenchmarkRoomMemory measures the memory of the API and of Redis while a million buyers join one
// line over HTTP, by tenths.
func BenchmarkRoomMemory(b *testing.B) {
	const tenth = 100_000
	f := newFixture(b)
	used := func() float64 {
		info := must.Get(f.client.InfoMap(b.Context(), "memory").Result())(b)
		return float64(must.Get(strconv.Atoi(info["Memory"]["used_memory"]))(b)) / 1e6
	}
	once(b, func() {
		target, api := "/sales/"+f.room()+"/waiting-room", f.APIs[0]
		before, redisBefore := api.Memory(b, "VmRSS"), used()
		var resident []string
		for range 10 {
			crowd(b, f.api, 64, tenth, func(c *client, _ int) error {
				return c.ask(post(target, f.token(inOrder())), http.StatusOK)
			})
			resident = append(resident, fmt.Sprintf("%.0f", api.Memory(b, "VmRSS")))
		}
		results.note("API: resident memory as a million buyers join a line", "flat after the first",
			"%.0f MB before, then %s MB by 100,000 buyers", before, strings.Join(resident, ", "))
		results.note("Redis: memory of a million buyers in a line", "≤ 32 MB", "%.1f MB",
			used()-redisBefore)
	})
}
