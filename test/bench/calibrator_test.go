package bench

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/installation"
)

// usage has the processor seconds and the counts of an installation between two readings.
type usage map[string]float64

// The names of a usage: processor seconds of each part, and counters of the programs' metrics.
const (
	wall         = "seconds"
	apiCPU       = "api"
	redisCPU     = "redis"
	rabbitCPU    = "rabbitmq"
	consumerCPU  = "consumer"
	mysqlCPU     = "mysql"
	pathCalls    = "calls for paths"
	reserveCalls = "seckill_reserve_batch_size_count"
	messages     = `seckill_publishes_total{outcome="confirmed"}`
	transactions = "seckill_write_batch_size_count"
	redoBytes    = "redo bytes"
)

// calibrator does pieces of work on an installation, and records the usage of each.
type calibrator struct {
	*fixture
	idle usage            // of an installation without requests
	sums map[string]usage // by piece of work, beyond idle
	done map[string]float64
	sent map[string][2]float64 // bytes in and out, by piece of work

	baseMB, connectionKB, saleBytes float64
}

func newCalibrator(b *testing.B) *calibrator {
	b.Helper()
	return &calibrator{
		fixture: newFixture(b), sums: map[string]usage{}, done: map[string]float64{},
		sent: map[string][2]float64{},
	}
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

func (c *calibrator) read() usage {
	c.b.Helper()
	u := usage{
		wall: float64(time.Now().UnixNano()) / 1e9, redisCPU: usedBy(c.Redis.Pid()).Seconds(),
		rabbitCPU: usedBy(c.Rabbit.Pid()).Seconds(), mysqlCPU: usedBy(c.SQL.Pid()).Seconds(),
	}
	for _, p := range c.APIs {
		u[apiCPU] += usedBy(p.Pid()).Seconds()
		c.scrape(u, p, reserveCalls, messages)
	}
	for _, p := range c.Consumers {
		u[consumerCPU] += usedBy(p.Pid()).Seconds()
		c.scrape(u, p, transactions)
	}
	u[pathCalls] = float64(c.redisCalls())
	var variable, value string
	pool := rawPool(c.b, c.DSN)
	defer pool.Close()
	row := pool.QueryRowContext(c.b.Context(), "SHOW GLOBAL STATUS LIKE 'Innodb_os_log_written'")
	require.NoError(c.b, row.Scan(&variable, &value))
	u[redoBytes] = parsed(c.b, value)
	return u
}

// scrape adds metrics of a program, by their series' names.
func (c *calibrator) scrape(u usage, p *installation.Program, names ...string) {
	c.b.Helper()
	resp, err := http.Get("http://" + p.OpsAddr() + "/metrics")
	require.NoError(c.b, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(c.b, err)
	for _, name := range names {
		_, rest, found := strings.Cut(string(text), "\n"+name+" ")
		require.True(c.b, found, "no metric %s", name)
		value, _, _ := strings.Cut(rest, "\n")
		u[name] += parsed(c.b, value)
	}
}

func parsed(b testing.TB, text string) float64 {
	b.Helper()
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	require.NoError(b, err)
	return n
}

// note adds the usage of a piece of work, less the usage of an idle installation in that time.
func (c *calibrator) note(piece string, done int, u usage) {
	sum := c.sums[piece]
	if sum == nil {
		sum = usage{}
		c.sums[piece] = sum
	}
	for name, x := range u {
		sum[name] += max(0, x-c.idle[name]*u[wall]/c.idle[wall])
	}
	c.done[piece] += float64(done)
}

// pressure is the number of connections that send requests at the same time.
type pressure int

func (p pressure) of(piece string) string { return piece + " " + strconv.Itoa(int(p)) }

// requests is the share of a round's requests that a pressure sends.
func (p pressure) requests(all int) int { return all * min(int(p), 32) / 32 }

// loads returns the pressures at which purchases are measured. Batches are small at the first and
// large at the last, which separates the cost of a call from the cost of an item.
func loads() []pressure { return []pressure{3, 16, connections} }

// tightSale is a sale whose limiter denies nearly every request.
func (c *calibrator) tightSale() string {
	c.b.Helper()
	goods := c.sale(1000)
	rate := map[string]any{"permitsPerSecond": 0.01, "maxBurstSeconds": 1, "maxWaitMillis": 0}
	require.NoError(c.b, c.Merchant(c.b).Do(c.b.Context(), http.MethodPatch, "/admin/sales/"+goods,
		map[string]any{"rate": rate}, &struct{}{}))
	require.Eventually(c.b, func() bool { // until the only permit is used
		a, err := c.Buyer(c.b, serial.Add(1)).Call(c.b.Context(), http.MethodPost,
			"/randomPath?goodsId="+goods, nil)
		return err == nil && a.Status == http.StatusTooManyRequests
	}, 10*time.Second, 10*time.Millisecond)
	return goods
}

// send sends requests and calls then, which may be nil. It notes the usage of both.
func (c *calibrator) send(piece string, requests [][]byte, p pressure, want int, then func()) {
	c.b.Helper()
	var in, out atomic.Int64
	c.note(piece, len(requests), c.over(func() {
		crowd(c.b, c.api, int(p), len(requests), func(cl *client, i int) error {
			err := cl.ask(requests[i], want)
			in.Add(int64(len(requests[i])))
			out.Add(int64(cl.size))
			return err
		})
		if then != nil {
			then()
		}
	}))
	sent := c.sent[piece]
	c.sent[piece] = [2]float64{sent[0] + float64(in.Load()), sent[1] + float64(out.Load())}
}
