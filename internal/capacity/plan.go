package capacity

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"flashsale.dev/seckill/internal/order/orderwriter"
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

// Part is the sum over one part of the system. Count is the number of nodes that keep the peak
// within Sale.Use; of Redis, the number of masters.
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
	Rows    []Row    `json:"rows"`
	Parts   []Part   `json:"parts"`
	Amounts []Amount `json:"amounts"`
	Costs   string   `json:"costs"` // where and when they were measured
}

// check reports all fields out of range together. NaN fails these comparisons as well.
func (s Sale) check() error {
	var problems []error
	atLeast := func(least float64, bound string, fields map[string]float64) {
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if x := fields[name]; !(x >= least) || math.IsInf(x, 0) {
				problems = append(problems, fmt.Errorf("%s must be a number %s", name, bound))
			}
		}
	}
	atLeast(math.SmallestNonzeroFloat64, "above 0", map[string]float64{
		"buyers": s.Buyers, "units": s.Units, "per-buyer": s.PerBuyer, "over": s.Over.Seconds(),
		"permits": s.Permits, "cores": s.Cores, "use": s.Use,
	})
	atLeast(1, "of at least 1", map[string]float64{
		"peak": s.Peak, "call-size": s.CallSize, "batch-size": s.BatchSize,
	})
	atLeast(0, "of at least 0", map[string]float64{
		"polls": s.Polls, "waits": s.Waits, "queries": s.Queries, "streams": s.Streams,
	})
	if s.Streams > 1 || s.Use > 1 {
		problems = append(problems, errors.New("streams and use are shares: at most 1"))
	}
	return errors.Join(problems...)
}

// Make multiplies a sale's counts by the costs. Its error names the fields that are out of range, a
// cost that the calibration lacks, or a part that would need more than mostNodes. A plan must not
// show work that costs nothing.
func Make(s Sale, c Calibration) (Plan, error) {
	if err := s.check(); err != nil {
		return Plan{}, err
	}
	p := Plan{Costs: c.Measured}
	orders := math.Min(s.Buyers, math.Floor(s.Units/s.PerBuyer))
	streams := orders * s.Streams
	for _, w := range s.work(orders, streams) {
		cost, known := c.Costs[w.part+": "+w.name]
		if !known || !(cost.Micros > 0) {
			return Plan{}, fmt.Errorf("the calibration has no cost of %q: run make calibrate",
				w.part+": "+w.name)
		}
		p.Rows = append(p.Rows, Row{
			w.part, w.name, w.count, cost.Micros, w.count * cost.Micros / 1e6,
			math.Min(w.count, s.Peak*w.count/w.seconds), // a second has at most all of them
		})
		p.traffic(w.count, cost)
	}
	if err := p.sum(s); err != nil {
		return Plan{}, err
	}
	for _, a := range []Amount{
		{What: "API memory: connections", Count: s.Buyers},
		{What: "API memory: event streams", Count: streams},
		{What: "API memory: nodes", Count: float64(p.Parts[0].Count)},
		{What: "Redis memory: the sale", Count: 1},
		{What: "Redis memory: buyers", Count: orders},
		{What: "Redis memory: pending, none written", Count: orders},
		{What: "MySQL tables", Count: orders},
		{What: "MySQL redo log", Count: orders},
		{What: "MySQL binlog", Count: orders},
	} {
		a.Bytes = c.Bytes[a.What]
		a.MB = a.Count * a.Bytes / 1e6
		p.Amounts = append(p.Amounts, a)
	}
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

// work is one kind of work: its count, and the seconds in which it is done.
type work struct {
	part, name     string
	count, seconds float64
}

// work counts the work of a sale. Both permits and arrivals bound the rate of orders.
func (s Sale) work(orders, streams float64) []work {
	calls, batches := math.Ceil(orders/s.CallSize), math.Ceil(orders/s.BatchSize)
	queries := (orders - streams) * s.Queries
	arrive := s.Over.Seconds()
	selling := max(orders/s.Permits, arrive*orders/s.Buyers, 1)
	return []work{
		{api, "GET /sales/{goodsId}", s.Buyers * s.Polls, arrive},
		{api, "POST /randomPath: 429", s.Buyers * s.Waits, arrive},
		{api, "POST /randomPath: sold out", s.Buyers - orders, arrive},
		{api, "POST /randomPath: a path", orders, selling},
		{api, "POST /{path}/decrStock", orders, selling},
		{api, "GET /orders/{orderSn}", queries, selling},
		{api, "GET /orders/{orderSn}/events", streams, selling},
		{api, "calls to Redis and RabbitMQ", 2 * calls, selling},
		{redis, "calls for paths", calls, selling},
		{redis, "paths", orders, selling},
		{redis, "calls for reservations", calls, selling},
		{redis, "reservations", orders, selling},
		{redis, "status queries", queries, selling},
		{rabbit, "messages", calls, selling},
		{rabbit, "orders in messages", orders, selling},
		{consumer, "messages", calls, selling},
		{consumer, "orders", orders, selling},
		{mysql, "transactions", batches, selling},
		{mysql, "orders", orders, selling},
		{mysql, "status queries", queries, selling},
	}
}

// traffic adds the bytes of requests to the first two amounts. Requests differ in size, so the
// bytes of each are their mean.
func (p *Plan) traffic(count float64, cost Cost) {
	if p.Amounts == nil {
		p.Amounts = []Amount{{What: "network: buyers to API"}, {What: "network: API to buyers"}}
	}
	if cost.InBytes == 0 || count == 0 {
		return
	}
	for i, bytes := range []float64{cost.InBytes, cost.OutBytes} {
		a := &p.Amounts[i]
		a.MB += count * bytes / 1e6
		a.Count += count
		a.Bytes = a.MB * 1e6 / a.Count
	}
}

// mostNodes bounds a plan: above it a field is a mistake, and sums may be beyond what JSON and an
// int can hold.
const mostNodes = 1e6

// sum adds the rows up by part. Redis executes on one processor, and the consumer on some of a
// host's. The other parts use all.
func (p *Plan) sum(s Sale) error {
	for _, name := range []string{api, redis, rabbit, consumer, mysql} {
		sum, cores := Part{Part: name}, s.Cores
		switch name {
		case redis:
			cores = 1
		case consumer:
			cores = float64(orderwriter.Processors(int(s.Cores)))
		}
		for _, r := range p.Rows {
			if r.Part == name {
				sum.Seconds += r.Seconds
				sum.PeakCores += r.Peak * r.Micros / 1e6
			}
		}
		nodes := math.Ceil(sum.PeakCores / (cores * s.Use))
		if !(nodes <= mostNodes) { // NaN too
			return fmt.Errorf("%s would need more than %g nodes: correct buyers, the counts per "+
				"buyer, cores, use or the sizes of batches", name, mostNodes)
		}
		sum.Count = int(nodes)
		p.Parts = append(p.Parts, sum)
	}
	return nil
}
