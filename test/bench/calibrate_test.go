package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/app/connect"
	"flashsale.dev/seckill/internal/capacity"
	"flashsale.dev/seckill/internal/testing/servers"
)

// calibrationSetting names the file that BenchmarkCalibrate writes.
const calibrationSetting = "SECKILL_BENCH_CALIBRATION"

// BenchmarkCalibrate measures the cost of each piece of work, for internal/capacity. `make
// calibrate` runs it alone. It needs the name of a file, because its figures compare with no floor.
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
		Notes: fmt.Sprintf(
			"%d rounds; one API and one consumer, load generator and servers on the "+
				"same two processors", rounds),
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
	all := saleStore{Store: c.store}
	empty := all.usedMB(c.b)
	goods := c.soldOut()
	c.written(goods)
	c.saleBytes = max(0, all.usedMB(c.b)-empty) * 1e6
	requests, _ := c.pathRequests(goods, 10*manyConnections)
	pid := c.APIs[0].Pid()
	c.baseMB = resident(c.b, pid, "VmRSS")
	play(c.b, c.api, manyConnections, len(requests), http.StatusConflict,
		func(i int) []byte { return requests[i] })
	c.connectionKB = 1000 * (resident(c.b, pid, "VmHWM") - c.baseMB) / manyConnections
}

// round does each piece of work once.
func (c *calibrator) round() {
	const many = 12_000
	gone, open, tight := c.soldOut(), c.sale(endless), c.tightSale()
	c.idle = c.over(func() { time.Sleep(5 * time.Second) }) // the cost of an idle installation
	refused := func(goods string) [][]byte {
		requests, _ := c.pathRequests(goods, many)
		return requests
	}
	page := func(int) []byte { return get("/sales/"+open, "") }
	c.send("page", repeated(many, page), connections, http.StatusOK, nil)
	c.send("soldOut", refused(gone), connections, http.StatusConflict, nil)
	c.send("limited", refused(tight), connections, http.StatusTooManyRequests, nil)
	for _, l := range loads() {
		paths, _ := c.pathRequests(open, l.requests(many))
		c.send(l.of("path"), paths, l, http.StatusOK, nil)
		bought := c.purchases(open, l.requests(many), scattered)
		c.send(l.of("purchase"), bought, l, http.StatusAccepted, func() { c.written(open) })
	}
	c.queryOrders(open, many)
}

func repeated(n int, request func(i int) []byte) [][]byte {
	requests := make([][]byte, n)
	for i := range requests {
		requests[i] = request(i)
	}
	return requests
}

// queryOrders measures status queries of written orders, and event streams up to their first event.
func (c *calibrator) queryOrders(goods string, n int) {
	c.b.Helper()
	sns, tokens := make([]string, connections), make([]string, connections)
	for i := range sns {
		buyer := serial.Add(1)
		sns[i], tokens[i] = c.buy(goods, buyer), c.token(buyer)
	}
	query := func(i int) []byte { return get("/orders/"+sns[i%len(sns)], tokens[i%len(sns)]) }
	c.send("status", repeated(n, query), connections, http.StatusOK, nil)
	c.note("stream", 1000, c.over(func() {
		for i := range 1000 {
			c.firstEvent(sns[i%len(sns)], tokens[i%len(sns)])
		}
	}))
}

// firstEvent opens an event stream, and closes it after its first event.
func (c *calibrator) firstEvent(orderSn, token string) {
	c.b.Helper()
	url := "http://" + c.api + "/orders/" + orderSn + "/events"
	req, err := http.NewRequestWithContext(c.b.Context(), http.MethodGet, url, nil)
	require.NoError(c.b, err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(c.b, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data:") {
			return
		}
	}
	c.b.Fatalf("the stream ended without an event: %s, %v", resp.Status, lines.Err())
}

// measureEntries measures the memory of a hundred thousand entries in Redis of each kind.
func measureEntries(b *testing.B, cost *capacity.RedisCost) {
	b.Helper()
	client := connect.Redis([]string{servers.Redis(b).Addr()}, "")
	s := newSaleStore(b, client, 1)
	const n = 100_000
	at := func() float64 { return s.usedMB(b) * 1e6 / n }
	outbox, sns := s.sell(b, n)
	require.NoError(b, s.Confirmed(b.Context(), 1, outbox...))
	confirmed := at()
	s.settle(b, sns)
	settled := at()
	require.NoError(b, client.Del(b.Context(), "sk:{1}:buyers").Err())
	used := at()
	cost.PendingBytes, cost.BuyerBytes = confirmed-settled, settled-used
	require.NoError(b, client.Close())
}
