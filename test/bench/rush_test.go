package bench

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/app/connect"
	"flashsale.dev/seckill/internal/redisstore"
	"flashsale.dev/seckill/internal/testing/installation"
)

// hundredThousand buyers come for a tenth as many units: the whole rush of the table.
const hundredThousand = 100_000

// arena is an installation in which rushes are held, beside the floor program.
type arena struct {
	*installation.Installation
	floor  string
	bare   string // the goods that the floor program sells
	client redis.UniversalClient
	store  *redisstore.Store
	cpu    func() time.Duration // of everything behind the loader
}

func newArena(b *testing.B) *arena {
	b.Helper()
	r := installation.Start(b, env, installation.Options{})
	a := &arena{Installation: r, bare: r.PutUp(b, 10_000_000, 1), client: connect.Redis([]string{r.Redis.Addr()}, "")}
	b.Cleanup(func() { _ = a.client.Close() })
	a.store = redisstore.New(a.client, redisstore.Options{})
	gone := r.PutUp(b, 1, 1)
	sellOut(b, r, gone)
	header, body := answerOf(b, "http://"+r.APIs[0].Addr+"/randomPath?goodsId="+gone, token(b, r, 1))
	floor, pid := startFloor(b, spec(r, a.bare, header, body))
	a.floor = floor
	a.cpu = processorTime(pid, r.APIs[0].Pid(), r.Consumers[0].Pid(), r.Redis.Pid(), r.SQL.Pid(), r.Rabbit.Pid())
	return a
}

// BenchmarkRush is a whole rush, ten buyers for each unit: from the first request for a path to the last order in MySQL. Its floor
// is the floor program answering as many requests, taking down as many orders, with the same consumer and
// database behind. The processor time is that of all processes but the loader, for one buyer.
func BenchmarkRush(b *testing.B) {
	a := newArena(b)
	for _, buyers := range []int{hundredThousand / 8, hundredThousand / 4, hundredThousand / 2, hundredThousand} {
		b.Run(fmt.Sprint(buyers), func(b *testing.B) {
			var seen rushed
			measure := fmt.Sprintf("whole rush, %s buyers for %s units", thousands(float64(buyers)), thousands(float64(buyers/10)))
			duel(b, measure, "buyers",
				contestant{"ours", func() lap { return a.rush(b, buyers, &seen) }},
				contestant{"the floors of its parts", func() lap { return a.floors(b, buyers) }})
			b.ReportMetric(float64(seen.calls)/float64(seen.requests), "redis-calls/request")
			r := results.rows[len(results.rows)-1]
			results.note(measure, "at most 1.5 times the floors; ≤ 0.2 Redis calls",
				"%.2f s to the last order in MySQL (floors %.2f s, %.2f ×); %.3f processor seconds for 1,000 buyers (floors %.3f); %.3f Redis calls a request",
				float64(buyers)/r.oursRate, float64(buyers)/r.floorRate, 1/r.ratio, 1000*r.oursCPU.Seconds(), 1000*r.floorCPU.Seconds(),
				float64(seen.calls)/float64(seen.requests))
		})
	}
}

// rushed counts over all laps.
type rushed struct{ requests, calls int64 }

// rush holds one: every buyer asks for a path, and buys with it; all units are sold, and written.
func (a *arena) rush(b *testing.B, buyers int, seen *rushed) lap {
	b.Helper()
	goods := a.PutUp(b, int64(buyers/10), 1)
	requests, tokens := a.askers(b, goods, buyers)
	before, spent := installation.RedisCalls(b, a.client), a.cpu()
	began := time.Now()
	counts := make([]int64, buyers)
	crowd(b, a.APIs[0].Addr, connections, buyers, func(c *client, i int) (err error) {
		counts[i], err = buy(c, requests[i], goods, tokens[i])
		return err
	})
	written(b, a.store, id(b, goods))
	l := lap{buyers, time.Since(began), a.cpu() - spent}
	left, err := a.store.View(b.Context(), id(b, goods))
	require.NoError(b, err)
	require.Zero(b, left.Available, "units were left in a rush of ten buyers for each")
	for _, n := range counts {
		seen.requests += n
	}
	seen.calls += installation.RedisCalls(b, a.client) - before
	return l
}

func (a *arena) askers(b *testing.B, goods string, buyers int) (requests [][]byte, tokens []string) {
	b.Helper()
	for range buyers {
		t := token(b, a.Installation, serial.Add(1))
		requests, tokens = append(requests, post("/randomPath?goodsId="+goods, t)), append(tokens, t)
	}
	return requests, tokens
}

var pathField = []byte(`"randomPath":"`)

// buy is one buyer's way, and how many requests it took.
func buy(c *client, request []byte, goods, token string) (requests int64, err error) {
	status, body, err := c.talk(request)
	_, after, found := bytes.Cut(body, pathField)
	switch {
	case err != nil:
		return 1, err
	case status == http.StatusConflict: // sold out
		return 1, nil
	case status != http.StatusOK || !found:
		return 1, fmt.Errorf("asked for a path: %d %s", status, body)
	}
	status, body, err = c.talk(post(fmt.Sprintf("/%s/decrStock?goodsId=%s", after[:32], goods), token))
	if err == nil && status != http.StatusAccepted && status != http.StatusConflict {
		err = fmt.Errorf("bought: %d %s", status, body)
	}
	return 2, err
}

// floors answers as many requests as there are buyers, and takes down an order for every tenth.
func (a *arena) floors(b *testing.B, buyers int) lap {
	b.Helper()
	requests, tokens := a.askers(b, a.bare, buyers)
	spent, began := a.cpu(), time.Now()
	play(b, a.floor, connections, buyers, http.StatusConflict, func(i int) []byte { return requests[i] })
	play(b, a.floor, connections, buyers/10, http.StatusAccepted, func(i int) []byte {
		return post("/x/decrStock?goodsId="+a.bare, tokens[i])
	})
	written(b, a.store, id(b, a.bare))
	return lap{buyers, time.Since(began), a.cpu() - spent}
}
