package capacity

import (
	"errors"
	"math"
	"time"
)

// Sale describes the buyers, and what the hosts offer. `seckillctl plan` has a flag for each field,
// with the tags' help and default.
type Sale struct {
	Buyers   float64       `default:"100000" help:"Buyers in all."`
	Units    float64       `default:"10000" help:"Units on sale."`
	PerBuyer float64       `default:"1" help:"Units that each buyer takes."`
	Over     time.Duration `default:"10s" help:"Time in which the buyers arrive."`
	// Permits bound the rate of orders, because every order needs a random path.
	Permits float64 `default:"1000" help:"Random paths per second that the sale's rate allows."`
	Polls   float64 `default:"3" help:"Views of the sale's page per buyer."`
	Waits   float64 `default:"1" help:"429 answers per buyer."`
	Queries float64 `default:"2" help:"Status queries per order that no event stream follows."`
	Streams float64 `default:"0" help:"Share of the orders that an event stream follows, 0 to 1."`
	Peak    float64 `default:"2" help:"Busiest second divided by the mean second."`
	// The sizes of batches divide the cost of a call among its items.
	CallSize  float64 `default:"2" help:"Reservations per Redis call: the mean of seckill_reserve_batch_size."`
	BatchSize float64 `default:"50" help:"Orders per transaction: the mean of seckill_write_batch_size."`
	Cores     float64 `default:"4" help:"Processors of one host."`
	// Use leaves room for the next peak, and for a node that is lost.
	Use float64 `default:"0.6" help:"Share of a processor that the peak may use."`
}

// Row is one kind of work: its count multiplied by its cost. A reader can check each row by hand.
type Row struct {
	Part    string  `json:"part"`
	Work    string  `json:"work"`
	Count   float64 `json:"count"`
	Micros  float64 `json:"micros"`
	Seconds float64 `json:"seconds"` // of processor time
	Peak    float64 `json:"peakPerSecond"`
}

// Part is the sum over one part of the system. Count is the number of nodes (API) or
// single-threaded shards that keep the peak within Sale.Use.
type Part struct {
	Part      string  `json:"part"`
	Seconds   float64 `json:"seconds"`
	PeakCores float64 `json:"peakCores"`
	Count     int     `json:"count"`
}

// Amount is memory, storage or network traffic: a count multiplied by a size.
type Amount struct {
	What  string  `json:"what"`
	Count float64 `json:"count"`
	Bytes float64 `json:"bytes"` // of each
	MB    float64 `json:"mb"`
}

// Plan is the table of costs of a sale.
type Plan struct {
	Rows    []Row      `json:"rows"`
	Parts   []Part     `json:"parts"`
	Amounts []Amount   `json:"amounts"`
	Costs   Provenance `json:"costs"`
}

// check reports all fields out of range together. NaN fails these comparisons as well.
func (s Sale) check() error {
	var problems []error
	for name, x := range map[string]float64{
		"buyers": s.Buyers, "units": s.Units, "per-buyer": s.PerBuyer, "over": s.Over.Seconds(),
		"permits": s.Permits, "call-size": s.CallSize, "batch-size": s.BatchSize,
		"cores": s.Cores, "use": s.Use, "peak": s.Peak,
	} {
		if !(x > 0) || math.IsInf(x, 0) {
			problems = append(problems, errors.New(name+" must be a number above 0"))
		}
	}
	for name, x := range map[string]float64{
		"polls": s.Polls, "waits": s.Waits, "queries": s.Queries, "streams": s.Streams,
	} {
		if !(x >= 0) || math.IsInf(x, 0) {
			problems = append(problems, errors.New(name+" must be a number of at least 0"))
		}
	}
	if s.Streams > 1 || s.Use > 1 {
		problems = append(problems, errors.New("streams and use are shares: at most 1"))
	}
	return errors.Join(problems...)
}

// Make multiplies a sale's counts by the costs. Its error names the fields that are out of range.
func Make(s Sale, c Calibration) (Plan, error) {
	if err := s.check(); err != nil {
		return Plan{}, err
	}
	orders := math.Min(s.Buyers, math.Floor(s.Units/s.PerBuyer))
	calls, batches := math.Ceil(orders/s.CallSize), math.Ceil(orders/s.BatchSize)
	streams, queries := orders*s.Streams, orders*(1-s.Streams)*s.Queries
	arrive := s.Over.Seconds()
	// Both permits and arrivals bound the rate of orders.
	selling := max(orders/s.Permits, arrive*orders/s.Buyers, 1)
	p := Plan{Costs: c.Provenance}
	add := func(part, work string, count, micros, seconds float64) {
		p.Rows = append(p.Rows,
			Row{part, work, count, micros, count * micros / 1e6, s.Peak * count / seconds})
	}
	request := func(work string, count float64, cost RequestCost, seconds float64) {
		add(api, work, count, cost.Micros, seconds)
		p.traffic(count, cost)
	}
	request("GET /sales/{goodsId}", s.Buyers*s.Polls, c.API.Page, arrive)
	request("POST /randomPath: 429", s.Buyers*s.Waits, c.API.Limited, arrive)
	request("POST /randomPath: sold out", s.Buyers-orders, c.API.SoldOut, arrive)
	request("POST /randomPath: a path", orders, c.API.Path, selling)
	request("POST /{path}/decrStock", orders, c.API.Purchase, selling)
	request("GET /orders/{orderSn}", queries, c.API.Status, selling)
	request("GET /orders/{orderSn}/events", streams, c.API.Stream, selling)
	add(api, "calls to Redis and RabbitMQ", 2*calls, c.API.Call, selling)
	add(redis, "calls for paths", calls, c.Redis.Path.Call, selling)
	add(redis, "paths", orders, c.Redis.Path.Item, selling)
	add(redis, "calls for reservations", calls, c.Redis.Reserve.Call, selling)
	add(redis, "reservations", orders, c.Redis.Reserve.Item, selling)
	add(redis, "status queries", queries, c.Redis.Status, selling)
	add(rabbit, "messages", calls, c.RabbitMQ.Call, selling)
	add(rabbit, "orders in messages", orders, c.RabbitMQ.Item, selling)
	add(consumer, "messages", calls, c.Consumer.Message, selling)
	add(consumer, "transactions", batches, c.Consumer.Transaction.Call, selling)
	add(consumer, "orders", orders, c.Consumer.Transaction.Item, selling)
	add(mysql, "transactions", batches, c.MySQL.Transaction.Call, selling)
	add(mysql, "orders", orders, c.MySQL.Transaction.Item, selling)
	add(mysql, "status queries", queries, c.MySQL.Status, selling)
	p.sum(s)
	p.amount("API memory: connections", s.Buyers, 1000*c.API.ConnectionKB)
	p.amount("API memory: event streams", streams, 1000*c.API.StreamKB)
	p.amount("API memory: nodes", float64(p.Parts[0].Count), 1e6*c.API.BaseMB)
	p.amount("Redis memory: the sale", 1, c.Redis.SaleBytes)
	p.amount("Redis memory: buyers", orders, c.Redis.BuyerBytes)
	p.amount("Redis memory: pending, none written", orders, c.Redis.PendingBytes)
	p.amount("MySQL tables", orders, c.MySQL.TableBytes)
	p.amount("MySQL redo log", orders, c.MySQL.RedoBytes)
	p.amount("MySQL binlog", orders, c.MySQL.BinlogBytes)
	return p, nil
}

// The parts of the system.
const (
	api      = "API"
	redis    = "Redis"
	rabbit   = "RabbitMQ"
	consumer = "consumer"
	mysql    = "MySQL"
)

// traffic adds the bytes of requests to the first two amounts. Requests differ in size, so the
// bytes of each are their mean.
func (p *Plan) traffic(count float64, cost RequestCost) {
	if p.Amounts == nil {
		p.Amounts = []Amount{{What: "network: buyers to API"}, {What: "network: API to buyers"}}
	}
	for i, bytes := range []float64{cost.InBytes, cost.OutBytes} {
		a := &p.Amounts[i]
		a.MB += count * bytes / 1e6
		a.Count += count
		a.Bytes = a.MB * 1e6 / a.Count
	}
}

// amount adds memory or storage: a count multiplied by a size in bytes.
func (p *Plan) amount(what string, count, bytes float64) {
	p.Amounts = append(p.Amounts, Amount{what, count, bytes, count * bytes / 1e6})
}

// sum adds the rows up by part. Redis executes on one processor; the other parts use several.
func (p *Plan) sum(s Sale) {
	for _, name := range []string{api, redis, rabbit, consumer, mysql} {
		sum, cores := Part{Part: name}, s.Cores
		if name == redis {
			cores = 1
		}
		for _, r := range p.Rows {
			if r.Part == name {
				sum.Seconds += r.Seconds
				sum.PeakCores += r.Peak * r.Micros / 1e6
			}
		}
		sum.Count = int(math.Ceil(sum.PeakCores / (cores * s.Use)))
		p.Parts = append(p.Parts, sum)
	}
}
