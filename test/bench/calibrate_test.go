package bench

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/capacity"
	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/testing/must"
)

// BenchmarkCalibrate measures the processor time of each piece of work, for internal/capacity.
// `make calibrate` runs it alone and names the file, because its figures compare with no floor. The
// bytes of a calibration do not depend on the machine, so they stay as they are.
func BenchmarkCalibrate(b *testing.B) {
	file := os.Getenv("SECKILL_BENCH_CALIBRATION")
	if file == "" {
		return
	}
	c := &calibrator{fixture: newFixture(b), sums: map[string]usage{}}
	for b.Loop() {
		c.round()
	}
	result := must.Get(capacity.BuiltIn())(b)
	c.setCosts(result.Costs)
	result.Measured = place() + time.Now().UTC().Format(", 2006-01-02, make calibrate")
	text := must.Get(json.MarshalIndent(result, "", "  "))(b)
	require.NoError(b, os.WriteFile(file, append(text, '\n'), 0o644))
}

// usage has the counts of an installation between two readings, and its processor seconds.
type usage map[string]float64

// The names of a usage, beside those of the parts: the pieces of work done, the seconds, and counts
// of calls. A part has its processor seconds.
const (
	done         = "done"
	wall         = "seconds"
	pathCalls    = "calls for paths"
	reserveCalls = "seckill_reserve_batch_size_count"
	messages     = `seckill_publishes_total{outcome="confirmed"}`
	transactions = "seckill_write_batch_size_count"
)

// calibrator does pieces of work on an installation, and sums up the usage of each.
type calibrator struct {
	*fixture
	idle usage            // of an installation without requests
	sums map[string]usage // by piece of work, beyond idle
}

func (c *calibrator) read() usage {
	c.b.Helper()
	api, consumer := c.APIs[0], c.Consumers[0]
	now := usage{
		wall: float64(time.Now().UnixNano()) / 1e9, pathCalls: float64(c.redisCalls()),
		reserveCalls: api.Metric(c.b, reserveCalls), messages: api.Metric(c.b, messages),
		transactions: consumer.Metric(c.b, transactions),
	}
	for part, d := range c.all().read() {
		now[part] = d.Seconds()
	}
	return now
}

// over runs work and returns the installation's usage meanwhile.
func (c *calibrator) over(work func()) usage {
	c.b.Helper()
	before := c.read()
	work()
	after := c.read()
	for name, x := range before {
		after[name] -= x
	}
	return after
}

// add does n pieces of work and adds their usage, less that of an idle installation in the time.
func (c *calibrator) add(piece string, n int, work func()) {
	c.b.Helper()
	if c.sums[piece] == nil {
		c.sums[piece] = usage{}
	}
	u, sum := c.over(work), c.sums[piece]
	for name, x := range u {
		sum[name] += max(0, x-c.idle[name]*u[wall]/c.idle[wall])
	}
	sum[done] += float64(n)
}

// send sends requests, as a piece of work.
func (c *calibrator) send(piece string, requests [][]byte, connections, want int) {
	c.b.Helper()
	c.add(piece, len(requests), func() {
		play(c.b, c.api, connections, len(requests), want,
			func(i int) []byte { return requests[i] })
	})
}

// round does each piece of work once.
func (c *calibrator) round() {
	const many = 12_000
	gone, open, tight := c.soldOut(), c.sale(endless), c.tightSale()
	c.idle = c.over(func() { time.Sleep(5 * time.Second) }) // the cost of an idle installation
	paths := func(goods string, n int) [][]byte {
		return c.pathRequests(goods, n, inOrder)
	}
	page := make([][]byte, many)
	for i := range page {
		page[i] = get("/sales/"+open, "")
	}
	c.send("GET /sales/{goodsId}", page, connections, http.StatusOK)
	c.send("POST /randomPath: sold out", paths(gone, many), connections, http.StatusConflict)
	c.send("POST /randomPath: 429", paths(tight, many), connections, http.StatusTooManyRequests)
	// Batches are small at the first load and large at the second.
	for load, at := range map[string]struct{ connections, n int }{
		" few": {3, many / 10}, " many": {connections, many},
	} {
		c.send("path"+load, paths(open, at.n), at.connections, http.StatusOK)
		bought := c.purchases(c.api, open, at.n, scattered)
		c.add("purchase"+load, at.n, func() {
			play(c.b, c.api, at.connections, at.n, http.StatusAccepted,
				func(i int) []byte { return bought[i] })
			c.written(open)
		})
	}
	queries, streams := make([][]byte, many), make([]*http.Request, connections)
	for i := range streams {
		buyer := serial.Add(1)
		sn, token := c.buy(open, buyer), c.token(buyer)
		for j := i; j < many; j += connections {
			queries[j] = get("/orders/"+sn, token)
		}
		streams[i] = must.Get(http.NewRequestWithContext(c.b.Context(), http.MethodGet,
			"http://"+c.api+"/orders/"+sn+"/events", nil))(c.b)
		streams[i].Header.Set("Authorization", "Bearer "+token)
	}
	c.send("GET /orders/{orderSn}", queries, connections, http.StatusOK)
	c.add("GET /orders/{orderSn}/events", 1000, func() {
		for i := range 1000 {
			c.openStream(streams[i%connections])
		}
	})
}

// openStream opens an event stream, and closes it after its first line.
func (c *calibrator) openStream(req *http.Request) {
	c.b.Helper()
	resp := must.Get(http.DefaultClient.Do(req))(c.b)
	defer resp.Body.Close()
	must.Get(bufio.NewReader(resp.Body).ReadString('\n'))(c.b)
}

// tightSale is a sale whose limiter denies nearly every request. Its only permit is used.
func (c *calibrator) tightSale() string {
	c.b.Helper()
	goods := must.Get(c.Merchant(c.b).PutUp(c.b.Context(), apiclient.NewSale{
		Title: "a kettle", Price: 1999, Stock: 1000, StartAt: time.Now().Add(-time.Minute).UTC(),
		EndAt: time.Now().Add(time.Hour).UTC(),
		Rate:  &apiclient.Rate{PermitsPerSecond: 0.01, MaxBurstSeconds: 1},
	}))(c.b)
	require.Eventually(c.b, func() bool {
		a, err := c.Buyer(c.b, serial.Add(1)).Call(c.b.Context(), http.MethodPost,
			"/randomPath?goodsId="+goods, nil)
		return err == nil && a.Status == http.StatusTooManyRequests
	}, 10*time.Second, 10*time.Millisecond)
	return goods
}

// setCosts derives the costs of a plan's rows from the usage in all rounds.
func (c *calibrator) setCosts(costs map[string]capacity.Cost) {
	set := func(row string, micros float64) {
		cost := costs[row]
		cost.Micros = micros
		costs[row] = cost
	}
	each := func(work, part string) float64 { return 1e6 * c.sums[work][part] / c.sums[work][done] }
	for _, work := range []string{
		"GET /sales/{goodsId}", "POST /randomPath: sold out", "POST /randomPath: 429",
		"GET /orders/{orderSn}", "GET /orders/{orderSn}/events",
	} {
		set("API: "+work, each(work, apiPart))
	}
	set("Redis: status queries", each("GET /orders/{orderSn}", redisPart))
	set("MySQL: status queries", each("GET /orders/{orderSn}", sqlPart))
	_, item := c.split("path", apiPart, pathCalls)
	set("API: POST /randomPath: a path", item)
	for _, work := range []struct{ piece, part, counter, callRow, itemRow string }{
		{
			"purchase", apiPart, reserveCalls, "API: calls to Redis and RabbitMQ",
			"API: POST /{path}/decrStock",
		},
		{"path", redisPart, pathCalls, "Redis: calls for paths", "Redis: paths"},
		{
			"purchase", redisPart, reserveCalls, "Redis: calls for reservations",
			"Redis: reservations",
		},
		{"purchase", rabbitPart, messages, "RabbitMQ: messages", "RabbitMQ: orders in messages"},
		{"purchase", consumerPart, messages, "consumer: messages", "consumer: orders"},
		{"purchase", sqlPart, transactions, "MySQL: transactions", "MySQL: orders"},
	} {
		call, item := c.split(work.piece, work.part, work.counter)
		set(work.callRow, call)
		set(work.itemRow, item)
	}
}

// split separates the cost of a call from the cost of an item. It solves the two equations of the
// small and the large load: cost = calls × call + items × item.
func (c *calibrator) split(piece, part, calls string) (call, item float64) {
	few, many := c.sums[piece+" few"], c.sums[piece+" many"]
	require.Positive(c.b, few[calls]*many[calls], "nothing was counted as %s", calls)
	call = (few[part]*many[done] - many[part]*few[done]) /
		(few[calls]*many[done] - many[calls]*few[done])
	call = max(0, call)
	return 1e6 * call, 1e6 * max(0, (many[part]-call*many[calls])/many[done])
}
