package bench

import (
	"math"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/capacity"
)

// calibration derives the costs from what all rounds spent.
func (y *yard) calibration() *measured {
	c := &measured{}
	first := y.idle[0] // with few sales that live
	idle := func(what string) float64 { return 1e6 * first[what] / first[wall] }
	c.API.IdleCPU, c.Redis.IdleCPU, c.Rabbit.IdleCPU = idle(apiCPU), idle(redisCPU), idle(rabbitCPU)
	c.Consumer.IdleCPU, c.MySQL.IdleCPU, c.Redis.IdleCalls = idle(consumerCPU), idle(mysqlCPU), first[redisCalls]/first[wall]
	c.API.BaseMB, c.API.ConnectionKB, c.API.StreamKB = y.baseMB, y.connectionKB, streamKB
	c.Redis.Idle = capacity.Bytes{In: first[redisIn] / first[wall], Out: first[redisOut] / first[wall]}
	c.MySQL.Idle = capacity.Bytes{In: first[mysqlIn] / first[wall], Out: first[mysqlOut] / first[wall]}
	c.Redis.Look = y.aside("look", redisCPU, redisIn, redisOut)
	lone := y.sums["alone"]
	c.Redis.SaleLook = capacity.Aside{CPU: 1e6 * lone[redisCPU] / lone[redisCalls], Bytes: capacity.Bytes{In: lone[redisIn] / lone[redisCalls], Out: lone[redisOut] / lone[redisCalls]}}
	c.Redis.Sale = y.saleBytes
	// A look wakes MySQL, which a crowd's would find awake. Redis' are a crowd's all the same: at leisure each look at a queued order
	// asks for the sale as well, which the plan counts by itself.
	c.Redis.QueuedLook = y.aside("queued", redisCPU, redisIn, redisOut)
	c.MySQL.QueuedLook = y.aside("queued, leisurely", mysqlCPU, mysqlIn, mysqlOut)
	c.MySQL.Look = y.aside("look, leisurely", mysqlCPU, mysqlIn, mysqlOut)
	y.wakes(c)
	y.orders(c)
	y.paths(c)
	y.requests(c)
	y.rows(c)
	return c
}

// streamKB is what the test of two thousand streams found (docs/how-to/operate.md): it counts the client's end in.
const streamKB = 69

// wakes finds what it costs a node to be woken by a request: how much more a leisurely one costs than one of a crowd, which finds it
// awake. The plan's own word of how often a node sleeps (capacity's answers) is turned round here and in awake.
func (y *yard) wakes(c *measured) {
	crowd, alone := 1e6*y.sums["refused"][apiCPU]/y.done["refused"], y.sums["alone"]
	slow, rate := 1e6*alone[apiCPU]/y.done["alone"], y.done["alone"]/alone[asking]
	wake := max(0, slow-crowd)
	for range 100 {
		wake = max(0, slow-crowd) * math.Exp(rate*(crowd+wake)/1e6)
	}
	y.wake, c.API.WakeCPU = wake, wake
}

// awake is the API's processor time of a piece of work, in microseconds, without what it took to wake it.
func (y *yard) awake(piece string) float64 {
	s, n := y.sums[piece], y.done[piece]
	if s[asking] == 0 {
		return 1e6 * s[apiCPU]
	}
	each := 1e6 * s[apiCPU] / n
	rest := each
	for range 100 {
		rest = (rest + max(0, each-y.wake*math.Exp(-n/s[asking]*(rest+y.wake)/1e6))) / 2
	}
	return rest * n
}

// fitted fits a value of purchases (or paths) by calls and things at all loads.
func (y *yard) fitted(piece string, calls, value func(piece string) float64) capacity.Sized {
	var points []point
	for _, l := range loads() {
		name := l.of(piece)
		points = append(points, point{calls(name), y.done[name], value(name)})
	}
	return fit(points)
}

func (y *yard) of(what string, unit float64) func(string) float64 {
	return func(piece string) float64 { return y.sums[piece][what] * unit }
}

// orders are purchases and what comes of them.
func (y *yard) orders(c *measured) {
	trip, message, commit := y.of(reserveTrips, 1), y.of(messages, 1), y.of(batches, 1)
	api := y.fitted("bought", trip, y.awake)
	c.API.TripCPU, c.API.Bought.CPU = api.Call, api.Each
	c.Redis.Order = y.fitted("bought", trip, y.of(redisCPU, 1e6))
	c.Redis.OrderIn, c.Redis.OrderOut = y.fitted("bought", trip, y.of(redisIn, 1)), y.fitted("bought", trip, y.of(redisOut, 1))
	c.Rabbit.CPU = y.fitted("bought", message, y.of(rabbitCPU, 1e6))
	c.Rabbit.InBytes, c.Rabbit.OutBytes = y.fitted("bought", message, y.of(rabbitIn, 1)), y.fitted("bought", message, y.of(rabbitOut, 1))
	y.consumers(c)
	c.MySQL.CPU = y.fitted("bought", commit, y.of(mysqlCPU, 1e6))
	c.MySQL.InBytes, c.MySQL.OutBytes = y.fitted("bought", commit, y.of(mysqlIn, 1)), y.fitted("bought", commit, y.of(mysqlOut, 1))
	var calls, tripTimes, writes, between []point
	var waits, confirmed, logged, bought float64
	for _, l := range loads() {
		name := l.of("bought")
		s, n := y.sums[name], y.done[name]
		calls = append(calls, point{s[reserveTrips], s[batches], y.sums[name][redisCalls]})
		quick := y.best[name]
		tripTimes = append(tripTimes, tripOf(quick[travellers], quick[reserveTrips], quick[asking])...)
		cycle := quick[asking] / quick[batches] // orders come without a pause
		if l.perSecond == 0 {
			rest := 1e6*(cycle-quick[batchTime]/quick[batches]) - float64(capacity.Default().Land.Linger.Microseconds())
			between = append(between, point{1, quick[batchOrders] / quick[batches], rest})
		}
		writes = append(writes, point{quick[batches], quick[batchOrders], 1e6 * quick[batchTime]})
		waits, confirmed, logged, bought = waits+s[confirmTime], confirmed+s[confirms], logged+s[redo], bought+n
	}
	c.Redis.OrderCalls, c.Redis.Trip, c.MySQL.Write = fit(calls), fit(tripTimes), fit(writes)
	c.Consumer.Between = fit(between)
	c.Redis.ConfirmDelay, c.MySQL.RedoBytes = 1e6*waits/max(1, confirmed), logged/bought
}

// consumers cost by transaction, message and order.
func (y *yard) consumers(c *measured) {
	var rows [][]float64
	var values []float64
	for _, l := range loads() {
		s := y.sums[l.of("bought")]
		rows, values = append(rows, []float64{s[batches], s[messages], y.done[l.of("bought")]}), append(values, 1e6*s[consumerCPU])
	}
	x := costs(rows, values)
	c.Consumer.CPU, c.Consumer.MessageCPU = capacity.Sized{Call: x[0], Each: x[2]}, x[1]
}

// tripOf is one point of how long trips take, by their groups: none where nearly all travelled alone, which tells nothing of it.
func tripOf(travelled, trips, seconds float64) []point {
	together := travelled / trips
	if together < 1.2 {
		return nil
	}
	return []point{{1, together, met(travelled/seconds, together)}}
}

// renewals are the looks at a sale that many ask for, each second.
const renewals = 40

func (y *yard) paths(c *measured) {
	all := y.of(redisCalls, 1)
	c.Redis.Path = y.fitted("path", all, y.of(redisCPU, 1e6))
	c.Redis.PathIn, c.Redis.PathOut = y.fitted("path", all, y.of(redisIn, 1)), y.fitted("path", all, y.of(redisOut, 1))
	var times []point
	for _, l := range loads() {
		name := l.of("path")
		quick := y.best[name]
		own := quick[redisCalls] - quick[permitCalls] - renewals*quick[asking]
		times = append(times, tripOf(y.done[name]/float64(len(y.idle)), max(1, own), quick[asking])...)
	}
	c.Redis.PathTrip = fit(times)
	busy := full.of("path")
	c.API.Path.CPU = max(0, y.awake(busy)-c.API.TripCPU*y.sums[busy][redisCalls]) / y.done[busy]
}

func (y *yard) aside(piece, cpu, in, out string) capacity.Aside {
	s, n := y.sums[piece], y.done[piece]
	return capacity.Aside{CPU: 1e6 * s[cpu] / n, Bytes: capacity.Bytes{In: s[in] / n, Out: s[out] / n}}
}

// requests are the costs and sizes of those that meet nothing of their own.
func (y *yard) requests(c *measured) {
	for piece, r := range map[string]*capacity.Request{
		"page": &c.API.Page, "refused": &c.API.Refused, "limited": &c.API.Limited, "lost": &c.API.Lost, "look": &c.API.Look, "queued": &c.API.QueuedLook, "stream": &c.API.Stream,
		full.of("path"): &c.API.Path, full.of("bought"): &c.API.Bought,
	} {
		n := y.done[piece]
		if r.CPU == 0 {
			r.CPU = y.awake(piece) / n
		}
		r.InBytes, r.OutBytes = y.sent[piece][0]/n, y.sent[piece][1]/n
	}
	lost := y.sums["lost"]
	c.API.Lost.CPU = max(0, c.API.Lost.CPU-c.API.TripCPU*lost[reserveTrips]/y.done["lost"])
	c.Redis.LostCPU = max(0, 1e6*y.sums["lost"][redisCPU]-c.Redis.Order.Call*lost[reserveTrips]) / y.done["lost"]
}

// indexesQuery asks for the bytes of each of their indexes.
const indexesQuery = `SELECT stat_value * @@innodb_page_size FROM mysql.innodb_index_stats
	WHERE database_name = DATABASE() AND table_name IN ('orders', 'buyer_holdings') AND stat_name = 'size'`

// rows are what orders take in the database. A binlog is not kept here: its bytes are the widths of the rows, as row events write them.
func (y *yard) rows(c *measured) {
	pool := rawPool(y.b, y.DSN)
	defer pool.Close()
	var orders, width float64
	_, err := pool.ExecContext(y.b.Context(), "ANALYZE TABLE orders, buyer_holdings")
	require.NoError(y.b, err)
	require.NoError(y.b, pool.QueryRowContext(y.b.Context(), `SELECT COUNT(*), AVG(LENGTH(order_sn) + LENGTH(status) + LENGTH(failure_reason) +
		LENGTH(name) + LENGTH(phone)) FROM orders`).Scan(&orders, &width))
	const fixed = 7*8 + 6 + 2 + 3*8 + 1 // integers and lengths of both rows, and their maps of what is NULL
	c.MySQL.BinlogBytes = width + fixed
	sizes, err := pool.QueryContext(y.b.Context(), indexesQuery)
	require.NoError(y.b, err)
	defer sizes.Close()
	for sizes.Next() {
		var bytes float64
		require.NoError(y.b, sizes.Scan(&bytes))
		c.MySQL.IndexBytes = append(c.MySQL.IndexBytes, bytes/orders)
	}
	require.NoError(y.b, sizes.Err())
	require.Len(y.b, c.MySQL.IndexBytes, 4)
}
