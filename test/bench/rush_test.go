package bench

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
	"flashsale.dev/seckill/internal/testing/must"
)

// rushBuyers is the number of buyers. A rush has a tenth as many units.
const rushBuyers = 100_000

// rush is a fixture for rushes, and their costs.
type rush struct {
	*fixture
	floor           floor
	cpu             func() time.Duration // of all processes but this one
	requests, calls int64                // to the API, and of it to Redis, over all rounds
}

// BenchmarkRush measures a whole rush of ten buyers for each unit, from the first request for a
// path to the last order in MySQL. The floor program answers as many requests and takes as many
// orders, with the same consumer and database. The processor time for one buyer is that of all
// processes but the load generator.
func BenchmarkRush(b *testing.B) {
	f := newFixture(b)
	r := &rush{fixture: f, floor: f.startFloor(f.soldOut())}
	r.cpu = cpuOf(r.floor.pid, r.APIs[0].Pid(), r.Consumers[0].Pid(), r.Redis.Pid(), r.SQL.Pid(),
		r.Rabbit.Pid())
	for _, buyers := range []int{rushBuyers / 8, rushBuyers / 4, rushBuyers / 2, rushBuyers} {
		b.Run(fmt.Sprint(buyers), func(b *testing.B) {
			f.b, r.requests, r.calls = b, 0, 0
			measure := fmt.Sprintf("whole rush, %s buyers for %s units",
				thousands(float64(buyers)), thousands(float64(buyers/10)))
			compare(b, measure, "buyers",
				contender{"ours", func() measurement { return r.ours(buyers) }},
				contender{"the floors of its parts", func() measurement { return r.bare(buyers) }})
			calls := float64(r.calls) / float64(r.requests)
			b.ReportMetric(calls, "redis-calls/request")
			row := results.rows[len(results.rows)-1]
			results.note(measure, "at most 1.5 times the floors; ≤ 0.2 Redis calls",
				"%.2f s to the last order in MySQL (floors %.2f s, %.2f ×); %.3f processor seconds "+
					"for 1,000 buyers (floors %.3f); %.3f Redis calls a request",
				float64(buyers)/row.oursRate, float64(buyers)/row.floorRate, 1/row.ratio,
				1000*row.oursCPU.Seconds(), 1000*row.floorCPU.Seconds(), calls)
		})
	}
}

// ours plays one rush: every buyer asks for a path and buys with it. All units are sold and
// written.
func (r *rush) ours(buyers int) measurement {
	r.b.Helper()
	goods := r.sale(int64(buyers / 10))
	requests, tokens := r.pathRequests(goods, buyers)
	calls, spent, began := r.redisCalls(), r.cpu(), time.Now()
	counts := make([]int64, buyers)
	crowd(r.b, r.api, connections, buyers, func(c *client, i int) (err error) {
		counts[i], err = c.buy(requests[i], goods, tokens[i])
		return err
	})
	r.written(goods)
	m := measurement{buyers, time.Since(began), r.cpu() - spent}
	left := must.Get(r.store.View(r.b.Context(), installation.Number(r.b, goods)))(r.b)
	require.Zero(r.b, left.Available, "units were left in a rush of ten buyers for each")
	for _, n := range counts {
		r.requests += n
	}
	r.calls += r.redisCalls() - calls
	return m
}

// bare answers as many requests as there are buyers, and takes an order for every tenth.
func (r *rush) bare(buyers int) measurement {
	r.b.Helper()
	requests, tokens := r.pathRequests(r.floor.goods, buyers)
	spent, began := r.cpu(), time.Now()
	play(r.b, r.floor.addr, connections, buyers, http.StatusConflict,
		func(i int) []byte { return requests[i] })
	play(r.b, r.floor.addr, connections, buyers/10, http.StatusAccepted, func(i int) []byte {
		return post("/x/decrStock?goodsId="+r.floor.goods, tokens[i])
	})
	r.written(r.floor.goods)
	return measurement{buyers, time.Since(began), r.cpu() - spent}
}

var pathField = []byte(`"randomPath":"`)

// buy makes one buyer's requests and counts them.
func (c *client) buy(request []byte, goods, token string) (requests int64, err error) {
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
	status, body, err = c.talk(
		post(fmt.Sprintf("/%s/decrStock?goodsId=%s", after[:32], goods), token))
	if err == nil && status != http.StatusAccepted && status != http.StatusConflict {
		err = fmt.Errorf("bought: %d %s", status, body)
	}
	return 2, err
}
