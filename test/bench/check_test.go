package bench

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/capacity"
	"flashsale.dev/seckill/internal/rush"
	"flashsale.dev/seckill/internal/testing/installation"
)

// checkFlag has TestPlanBesideMeasured hold its rushes: minutes.
var checkFlag = flag.Bool("plan.check", false, "hold rushes and print seckillctl plan's figures beside what was measured")

// rushCase is a rush that calibration knows nothing of: its sizes and shapes are others.
type rushCase struct {
	name            string
	apis, consumers int
	buyers, units   int
	over            time.Duration // evenly; all as fast as 128 connections go if 0
}

func rushCases() []rushCase {
	return []rushCase{
		{name: "30,000 by 128 connections for 3,000; 1 API", apis: 1, consumers: 1, buyers: 30_000, units: 3000},
		{name: "8,000 even in 8 s for 4,000; 2 APIs", apis: 2, consumers: 2, buyers: 8000, units: 4000, over: 8 * time.Second},
		{name: "20,000 even in 8 s for 1,000; 3 APIs", apis: 3, consumers: 1, buyers: 20_000, units: 1000, over: 8 * time.Second},
	}
}

// TestPlanBesideMeasured prints a table of what was planned and what was measured. The shape of a rush, how long it took to come,
// and how often buyers looked, and how long a call to Redis and a transaction took, are given to the plan: they are what buyers do. All else is the plan's own word.
func TestPlanBesideMeasured(t *testing.T) {
	if !*checkFlag {
		return
	}
	cells := [][]string{{"plan / measured"}, {"---"}}
	for i, c := range rushCases() {
		var rounds []spent
		var came []float64
		for range 3 {
			t.Run(c.name, func(t *testing.T) { // so that one installation is down before the next is up
				s, list := c.hold(t)
				rounds, came = append(rounds, s), average(came, list)
			})
		}
		cells[0], cells[1] = append(cells[0], c.name), append(cells[1], "--:")
		for j, r := range c.rows(t, middle(rounds), came) {
			if i == 0 {
				cells = append(cells, []string{r[0]})
			}
			cells[j+2] = append(cells[j+2], r[1])
		}
	}
	fmt.Fprintf(os.Stdout, "\n%s\n%s\n", place(), aligned(cells))
}

// calm is what servers need to be done with what a new installation has them do: tables, queues, and their replicas.
const calm = 6 * time.Second

// middle is the median of each figure.
func middle(rounds []spent) spent {
	m := spent{}
	for name := range rounds[0] {
		var values []float64
		for _, r := range rounds {
			values = append(values, r[name])
		}
		m[name] = median(values)
	}
	return m
}

// Figures of a rush beside those of the meters.
const (
	pathsGiven = "paths"
	refusals   = "refused"
	lostCalls  = "lost"
	looked     = "looks"
	lookedSoon = "looks at what is queued"
	bought     = "queued"
	redisMB    = "redis MB"
	tableMB    = "table MB"
	buyersIn   = "bytes to the API"
	buyersOut  = "bytes from the API"
	lastRow    = "seconds to the last row"
	loneTrip   = "seconds of a lone call"
)

// hold holds the rush on an installation of its own, whose virtual host and database nobody else uses.
func (c rushCase) hold(t *testing.T) (spent, []float64) {
	t.Helper()
	m := newMeters(t, installation.Start(t, env, installation.Options{APIs: c.apis, Consumers: c.consumers, Hosts: true}))
	time.Sleep(calm)
	goods := m.PutUp(t, int64(c.units), 1)
	memory, tables := m.redisBytes(), m.tableBytes()
	lone := m.loneTrip()
	count := &counter{by: map[string]float64{}, began: time.Now()}
	var took time.Duration
	s := m.over(func() {
		began := time.Now()
		count.began = began
		c.rush(t, m, goods, count)
		took = time.Since(began)
		m.drained(goods)
		count.by[lastRow] = m.lastCreated(goods).Sub(began).Seconds()
	})
	for name, n := range count.by {
		s[name] = n
	}
	s[loneTrip] = lone
	s[asking], s[redisMB], s[tableMB] = took.Seconds(), (m.redisBytes()-memory)/1e6, (m.tableBytes()-tables)/1e6
	facts := m.Facts(t, goods)
	require.EqualValues(t, c.units, facts.Orders)
	return s, count.came
}

func (c rushCase) rush(t *testing.T, m meters, goods string, count *counter) {
	t.Helper()
	atOnce := connections
	if c.over > 0 {
		atOnce = 600
	}
	p := rush.Plan{
		GoodsID: goods, Token: m.BuyerToken, Buyers: c.buyers, AtOnce: atOnce, Over: c.over, FirstID: serial.Add(int64(c.buyers)) - int64(c.buyers) + 1,
		CallTimeout: 20 * time.Second,
	}
	for i := range m.APIs {
		p.Bases = append(p.Bases, m.Base(i))
	}
	direct := rush.NewDirect(rush.DirectOptions{Conns: atOnce, Timeout: 20 * time.Second})
	defer direct.Abort()
	count.next = direct
	p.Through = func(*http.Client) *http.Client { return &http.Client{Transport: count} }
	report, err := rush.Run(t.Context(), p)
	require.NoError(t, err)
	for _, api := range m.APIs {
		_, port, _ := strings.Cut(api.Addr, ":")
		in, out := sockets(t, port)
		count.by[buyersIn] += in
		count.by[buyersOut] += out
	}
	require.Equal(t, c.units, report.Count(rush.Won))
}

// planned is the same rush as the plan sees it.
func (c rushCase) planned(t *testing.T, s spent, came []float64) capacity.Plan {
	t.Helper()
	sale := capacity.Default()
	sale.Buyers, sale.Units, sale.Shape, sale.Think, sale.Polls, sale.Retries = int64(c.buyers), int64(c.units), capacity.Given, 0, 0, 0
	sale.Come = came
	sale.Over, sale.Looks, sale.Permits = time.Duration(len(came))*cameEach, s[looked]/s[bought], 100_000
	sale.Land.Nodes, sale.Land.Buckets = c.apis, 1
	sale.Land.LoneTrip = time.Duration(s[loneTrip] * float64(time.Second))
	sale.Land.Trip = time.Duration(s[tripSeconds] / s[reserveTrips] * float64(time.Second))
	sale.Land.Write = time.Duration(s[batchTime] / s[batches] * float64(time.Second))
	costs, err := capacity.BuiltIn()
	require.NoError(t, err)
	p, err := capacity.Make(sale, costs)
	require.NoError(t, err)
	return p
}

// rows are a column of the table: what it is, and both figures with their ratio.
func (c rushCase) rows(t *testing.T, s spent, came []float64) (cells [][]string) {
	t.Helper()
	p := c.planned(t, s, came)
	row := func(figure string, plan, measured float64) {
		cells = append(cells, []string{figure, fmt.Sprintf("%s / %s = %.2f", digits(plan), digits(measured), plan/measured)})
	}
	row("a call to Redis, ms (given)", 1000*p.Sale.Land.Trip.Seconds(), 1000*s[tripSeconds]/s[reserveTrips])
	row("a lone call to Redis, ms (given)", 1000*p.Sale.Land.LoneTrip.Seconds(), 1000*s[loneTrip])
	row("a transaction, ms (given)", 1000*p.Sale.Land.Write.Seconds(), 1000*s[batchTime]/s[batches])
	row("random paths given", p.Total(capacity.Paths), s[pathsGiven])
	row("answers “sold out”", p.Total(capacity.Refused), s[refusals])
	row("API, CPU s", p.API.Seconds, s[apiCPU])
	row("Redis, CPU s", p.Redis.Seconds, s[redisCPU])
	row("RabbitMQ, CPU s", p.Rabbit.Seconds, s[rabbitCPU])
	row("consumer, CPU s", p.Consumer.Seconds, s[consumerCPU])
	row("MariaDB, CPU s", p.MySQL.Seconds, s[mysqlCPU])
	row("Redis calls", p.Redis.Calls, s[redisCalls]+s[lookedSoon]) // such a look is a call that is no script
	row("messages", p.Rabbit.Messages, s[messages])
	row("transactions", p.MySQL.Transactions, s[batches])
	row("Redis memory left, MB", p.Redis.Memory[0].MB+p.Redis.Memory[2].MB+p.Redis.Memory[3].MB, s[redisMB])
	row("tables, MB", p.MySQL.DataMB, s[tableMB])
	row("redo log, MB", p.MySQL.RedoMB, s[redo]/1e6)
	for i, hop := range [][2]string{{buyersIn, buyersOut}, {redisIn, redisOut}, {rabbitIn, ""}, {rabbitOut, ""}, {mysqlIn, mysqlOut}} {
		row(p.Hops[i].Way+", MB there", p.Hops[i].MBTo, s[hop[0]]/1e6)
		if hop[1] != "" {
			row(p.Hops[i].Way+", MB back", p.Hops[i].MBFrom, s[hop[1]]/1e6)
		}
	}
	row("last order in MariaDB, s", p.LastRow, s[lastRow])
	return cells
}

// digits writes three of them.
func digits(x float64) string {
	if x >= 1000 {
		return thousands(x)
	}
	return fmt.Sprintf("%.3g", x)
}
