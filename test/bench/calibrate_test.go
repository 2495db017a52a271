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
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/servers"
)

// calibrationSetting names the file that BenchmarkCalibrate writes.
const calibrationSetting = "SECKILL_BENCH_CALIBRATION"

// BenchmarkCalibrate measures what each piece of work costs each program and server, for internal/capacity. make calibrate runs it
// alone; without the file's name it does nothing, for its figures are no duel.
func BenchmarkCalibrate(b *testing.B) {
	file := os.Getenv(calibrationSetting)
	if file == "" {
		return
	}
	y := newYard(b)
	y.crowdOfConnections()
	rounds := 0
	for b.Loop() {
		y.round()
		rounds++
	}
	cal := y.calibration()
	cal.Memory(b)
	cal.Provenance = capacity.Provenance{
		Machine: place(), Date: time.Now().UTC().Format(time.DateOnly), Command: "make calibrate",
		Notes: fmt.Sprintf("%d rounds; one API and one consumer, loader and servers on the same two processors", rounds),
	}
	text, err := json.MarshalIndent(cal.Calibration, "", "  ")
	require.NoError(b, err)
	require.NoError(b, os.WriteFile(file, append(text, '\n'), 0o644)) //nolint:gosec // a document that everybody may read
}

// manyConnections are those whose memory is measured.
const manyConnections = 2000

// crowdOfConnections measures the API's memory alone and under many connections, before anything else has made it grow.
func (y *yard) crowdOfConnections() {
	y.b.Helper()
	empty := y.redisBytes()
	goods := y.PutUp(y.b, 1, 1)
	sellOut(y.b, y.Rig, goods)
	y.drained(goods)
	y.saleBytes = max(0, y.redisBytes()-empty)
	requests := make([][]byte, 10*manyConnections)
	for i := range requests {
		requests[i] = post("/randomPath?goodsId="+goods, y.token())
	}
	pid := y.APIs[0].Pid()
	y.baseMB = resident(y.b, pid, "VmRSS")
	play(y.b, y.APIs[0].Addr, manyConnections, len(requests), http.StatusConflict, func(i int) []byte { return requests[i] })
	y.connectionKB = 1000 * (resident(y.b, pid, "VmHWM") - y.baseMB) / manyConnections
}

// round does every piece once.
func (y *yard) round() {
	const many = 12_000
	gone := y.PutUp(y.b, 1, 1)
	sellOut(y.b, y.Rig, gone)
	open, tight := y.PutUp(y.b, 10_000_000, 1), y.tight()
	y.idle = append(y.idle, y.over(func() { time.Sleep(5 * time.Second) })) // that it does nothing is what is looked at
	y.ask("page", many, connections, http.StatusOK, func(int) []byte { return get("/sales/"+open, "") })
	y.ask("refused", many, connections, http.StatusConflict, func(int) []byte { return post("/randomPath?goodsId="+gone, y.token()) })
	y.ask("limited", many, connections, http.StatusTooManyRequests, func(int) []byte { return post("/randomPath?goodsId="+tight, y.token()) })
	y.pace("alone", aloneRequests, http.StatusConflict, func(int) []byte { return post("/randomPath?goodsId="+gone, y.token()) })
	for _, l := range loads() {
		paths := make([][]byte, l.many(many))
		for i := range paths {
			paths[i] = post("/randomPath?goodsId="+open, y.token())
		}
		y.send(l.of("path"), paths, l, http.StatusOK, func() {})
		bought := purchases(y.b, y.Rig, y.store, id(y.b, open), l.many(many), scattered)[:l.many(many)]
		y.send(l.of("bought"), bought, l, http.StatusAccepted, func() { y.drained(open) }) // consumer and database are waited for
	}
	y.lose(many)
	y.look(open, many)
}

// lose notes purchases with good paths of a sale that is sold out meanwhile.
func (y *yard) lose(n int) {
	y.b.Helper()
	goods := y.PutUp(y.b, 1, 1)
	requests := purchases(y.b, y.Rig, y.store, id(y.b, goods), n, inOrder)
	sellOut(y.b, y.Rig, goods)
	y.send("lost", requests, full, http.StatusConflict, func() {})
}

// look notes looks at orders, and the opening of event streams up to their first event.
func (y *yard) look(goods string, n int) {
	y.b.Helper()
	var sns, tokens []string
	unlock := y.lock(goods) // so that what is bought stays queued
	for range connections {
		buyer := serial.Add(1)
		var path struct{ RandomPath string }
		var placed struct{ OrderSn string }
		c := y.Buyer(y.b, buyer)
		c.Token = token(y.b, y.Rig, buyer) // who has told a name and a number: they travel with the order
		require.NoError(y.b, c.Do(y.b.Context(), http.MethodPost, "/randomPath?goodsId="+goods, nil, &path))
		require.NoError(y.b, c.Do(y.b.Context(), http.MethodPost, "/"+path.RandomPath+"/decrStock?goodsId="+goods, nil, &placed))
		sns, tokens = append(sns, placed.OrderSn), append(tokens, token(y.b, y.Rig, buyer))
	}
	at := func(i int) int { return i % len(sns) }
	ask := func(i int) []byte { return get("/orders/"+sns[at(i)], tokens[at(i)]) }
	y.ask("queued", n/2, connections, http.StatusOK, ask)
	y.pace("queued, leisurely", aloneRequests, http.StatusOK, ask)
	unlock()
	y.drained(goods)
	y.ask("look", n, connections, http.StatusOK, ask)
	y.pace("look, leisurely", aloneRequests, http.StatusOK, ask)
	y.note("stream", 1000, y.over(func() {
		for i := range 1000 {
			firstEvent(y.b, y.APIs[0].Addr, get("/orders/"+sns[at(i)]+"/events", tokens[at(i)]))
		}
	}))
}

// measured is a calibration in the making.
type measured struct{ capacity.Calibration }

// Memory measures what entries take in Redis, of a hundred thousand each, and the API's.
func (c *measured) Memory(b *testing.B) {
	server := servers.Redis(b)
	client := connect.Redis([]string{server.Addr()}, "")
	s := newShelf(b, client, 1)
	const n = 100_000.0
	at := func() float64 { return usedMemory(b, client) * 1e6 }
	empty := at()
	var groups [][]seckill.Reservation
	for range int(n) / 200 {
		groups = append(groups, s.prepare(b, 200))
	}
	paths := at()
	var outbox, sns []string
	for _, group := range groups {
		g, err := s.Reserve(b.Context(), 1, 1, group)
		require.NoError(b, err)
		outbox = append(outbox, g.OutboxID)
		for _, r := range group {
			sns = append(sns, r.OrderSn)
		}
	}
	reserved := at()
	require.NoError(b, s.Confirmed(b.Context(), 1, outbox...))
	confirmed := at()
	for i := 0; i < len(sns); i += 500 {
		_, err := s.Settle(b.Context(), 1, sns[i:i+500])
		require.NoError(b, err)
	}
	settled := at()
	require.NoError(b, client.Del(b.Context(), "sk:{1}:buyers").Err())
	used := at()
	r := &c.Redis
	r.UnusedPath, r.Outbox, r.Pending = (paths-empty)/n, (reserved-confirmed)/n, (confirmed-settled)/n
	r.Buyer, r.UsedPath = (settled-used)/n, (used-empty)/n
	require.NoError(b, client.Close())
}
