package bench

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/app/connect"
	"flashsale.dev/seckill/internal/capacity"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/servers"
)

// calibrationSetting names the file that BenchmarkCalibrate writes.
const calibrationSetting = "SECKILL_BENCH_CALIBRATION"

// BenchmarkCalibrate measures what each piece of work costs, for internal/capacity. `make calibrate`
// runs it alone. It needs the name of a file, because its figures compare with no floor.
func BenchmarkCalibrate(b *testing.B) {
	file := os.Getenv(calibrationSetting)
	if file == "" {
		return
	}
	c := newCalibrator(b)
	c.measureConnections()
	rounds := 0
	for b.Loop() {
		c.round()
		rounds++
	}
	result := c.result()
	measureEntries(b, &result.Redis)
	result.Provenance = capacity.Provenance{
		Machine: place(), Date: time.Now().UTC().Format(time.DateOnly), Command: "make calibrate",
		Notes: fmt.Sprintf("%d rounds; one API and one consumer, load generator and servers on the same two processors", rounds),
	}
	text, err := json.MarshalIndent(result, "", "  ")
	require.NoError(b, err)
	require.NoError(b, os.WriteFile(file, append(text, '\n'), 0o644))
}

// manyConnections is the number of connections whose memory is measured.
const manyConnections = 2000

// measureConnections measures the API's memory alone and with many connections. It runs first,
// because later work makes the heap grow.
func (c *calibrator) measureConnections() {
	c.b.Helper()
	empty := usedMemory(c.b, c.client) * 1e6
	goods := c.PutUp(c.b, 1, 1)
	sellOut(c.b, c.Installation, goods)
	c.drained(goods)
	c.saleBytes = max(0, usedMemory(c.b, c.client)*1e6-empty)
	requests := make([][]byte, 10*manyConnections)
	for i := range requests {
		requests[i] = post("/randomPath?goodsId="+goods, c.token())
	}
	pid := c.APIs[0].Pid()
	c.baseMB = resident(c.b, pid, "VmRSS")
	play(c.b, c.APIs[0].Addr, manyConnections, len(requests), http.StatusConflict, func(i int) []byte { return requests[i] })
	c.connectionKB = 1000 * (resident(c.b, pid, "VmHWM") - c.baseMB) / manyConnections
}

// round does each piece of work once.
func (c *calibrator) round() {
	const many = 12_000
	gone := c.PutUp(c.b, 1, 1)
	sellOut(c.b, c.Installation, gone)
	open, tight := c.PutUp(c.b, 10_000_000, 1), c.tightSale()
	c.idle = c.over(func() { time.Sleep(5 * time.Second) }) // the cost of an idle installation
	c.ask("page", many, http.StatusOK, func(int) []byte { return get("/sales/"+open, "") })
	c.ask("soldOut", many, http.StatusConflict, func(int) []byte { return post("/randomPath?goodsId="+gone, c.token()) })
	c.ask("limited", many, http.StatusTooManyRequests, func(int) []byte { return post("/randomPath?goodsId="+tight, c.token()) })
	for _, l := range loads() {
		paths := make([][]byte, l.requests(many))
		for i := range paths {
			paths[i] = post("/randomPath?goodsId="+open, c.token())
		}
		c.send(l.of("path"), paths, l, http.StatusOK, func() {})
		bought := purchases(c.b, c.Installation, id(c.b, open), l.requests(many), scattered)[:l.requests(many)]
		c.send(l.of("purchase"), bought, l, http.StatusAccepted, func() { c.drained(open) }) // until all is written
	}
	c.queryOrders(open, many)
}

// queryOrders measures status queries of written orders, and event streams up to their first event.
func (c *calibrator) queryOrders(goods string, n int) {
	c.b.Helper()
	var sns, tokens []string
	for range connections {
		buyer := serial.Add(1)
		var path struct{ RandomPath string }
		var placed struct{ OrderSn string }
		client := c.Buyer(c.b, buyer)
		client.Token = token(c.b, c.Installation, buyer) // with a name and a phone number, which travel with the order
		require.NoError(c.b, client.Do(c.b.Context(), http.MethodPost, "/randomPath?goodsId="+goods, nil, &path))
		require.NoError(c.b, client.Do(c.b.Context(), http.MethodPost, "/"+path.RandomPath+"/decrStock?goodsId="+goods, nil, &placed))
		sns, tokens = append(sns, placed.OrderSn), append(tokens, client.Token)
	}
	c.drained(goods)
	at := func(i int) int { return i % len(sns) }
	c.ask("status", n, http.StatusOK, func(i int) []byte { return get("/orders/"+sns[at(i)], tokens[at(i)]) })
	c.note("stream", 1000, c.over(func() {
		for i := range 1000 {
			firstEvent(c.b, c.APIs[0].Addr, get("/orders/"+sns[at(i)]+"/events", tokens[at(i)]))
		}
	}))
}

// measureEntries measures the memory of entries in Redis, of a hundred thousand each.
func measureEntries(b *testing.B, cost *capacity.RedisCost) {
	b.Helper()
	server := servers.Redis(b)
	client := connect.Redis([]string{server.Addr()}, "")
	s := newRedisStore(b, client, 1)
	const n = 100_000.0
	at := func() float64 { return usedMemory(b, client) * 1e6 }
	var groups [][]reservation.Reservation
	for range int(n) / 200 {
		groups = append(groups, wishes(b, 200))
	}
	var outbox, sns []string
	for _, group := range groups {
		g, err := s.Reserve(b.Context(), 1, 1, group)
		require.NoError(b, err)
		outbox = append(outbox, g.OutboxID)
		for _, r := range group {
			sns = append(sns, r.OrderSn)
		}
	}
	require.NoError(b, s.Confirmed(b.Context(), 1, outbox...))
	confirmed := at()
	for i := 0; i < len(sns); i += 500 {
		_, err := s.Settle(b.Context(), 1, sns[i:i+500])
		require.NoError(b, err)
	}
	settled := at()
	require.NoError(b, client.Del(b.Context(), "sk:{1}:buyers").Err())
	used := at()
	cost.PendingBytes, cost.BuyerBytes = (confirmed-settled)/n, (settled-used)/n
	require.NoError(b, client.Close())
}
