package capacity

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Plan is what a sale comes to.
type Plan struct {
	Sale        Sale       `json:"sale"`
	Calibration Provenance `json:"calibration"`
	Stages      []Rate     `json:"stages"`
	SoldOut     float64    `json:"soldOutSeconds"` // after the first buyer pressed; -1: never
	LastRow     float64    `json:"lastOrderInMySQLSeconds"`
	GaveUp      float64    `json:"gaveUp"`
	Unsold      float64    `json:"unsoldUnits"`
	Backlog     float64    `json:"backlogOrders"` // the most orders that are not written
	API         API        `json:"api"`
	Redis       Redis      `json:"redis"`
	Rabbit      Rabbit     `json:"rabbitmq"`
	Consumer    Consumer   `json:"consumer"`
	MySQL       MySQL      `json:"mysql"`
	Hops        []Hop      `json:"hops"`
	Limits      []Limit    `json:"limits"` // of one of each, the most used first
}

// Rate is a count, and its highest rate.
type Rate struct {
	Stage Stage   `json:"stage"`
	Total float64 `json:"total"`
	Peak  float64 `json:"peakPerSecond"`
}

// Work is processor time of one kind of program or server.
type Work struct {
	Seconds float64 `json:"cpuSeconds"` // in all, from the first look at the page to the last order written
	Peak    float64 `json:"peakCores"`
}

// API is what the API needs. Nodes is as many as keep the peak within Land's use of processor, memory, NIC and streams.
type API struct {
	Work
	Nodes       int     `json:"nodes"`
	Connections float64 `json:"connections"`
	Streams     float64 `json:"streams"`
	NodeMB      float64 `json:"nodeMB"` // memory of one of them at its peak
}

// Redis is what Redis needs.
type Redis struct {
	Work
	Calls     float64 `json:"calls"`
	PeakCalls float64 `json:"peakCallsPerSecond"`
	PerGroup  float64 `json:"ordersPerCall"`
	Shards    int     `json:"shards"` // buckets of the stock, each on a master of its own
	Memory    []Kept  `json:"memory"`
	WorstMB   float64 `json:"worstMB"` // where nothing is confirmed or written while it sells
}

// Kept is what one kind of entry takes at its most.
type Kept struct {
	What    string  `json:"what"`
	Entries float64 `json:"entries"`
	MB      float64 `json:"MB"`
}

// Rabbit is what RabbitMQ needs.
type Rabbit struct {
	Work
	Messages     float64 `json:"messages"`
	PeakMessages float64 `json:"peakMessagesPerSecond"`
	MB           float64 `json:"MB"`      // of all messages
	QueueMB      float64 `json:"queueMB"` // that wait at the most
}

// Consumer is what the consumers need.
type Consumer struct {
	Work
	Active int `json:"active"` // that write at the same time: one for each queue in which the sale has a bucket
}

// MySQL is what the database does.
type MySQL struct {
	Work
	Transactions     float64 `json:"transactions"`
	PeakTransactions float64 `json:"peakTransactionsPerSecond"`
	PerTransaction   float64 `json:"ordersPerTransaction"`
	PeakRows         float64 `json:"peakRowsPerSecond"`      // inserted and changed
	Fastest          float64 `json:"fastestOrdersPerSecond"` // of one writer
	DataMB           float64 `json:"dataMB"`
	RedoMB           float64 `json:"redoMB"`
	BinlogMB         float64 `json:"binlogMB"`
}

// Make plans a sale.
func Make(s Sale, c Calibration) (Plan, error) {
	if err := s.Check(); err != nil {
		return Plan{}, fmt.Errorf("plan a sale: %w", err)
	}
	if s.Shape == AtOnce {
		s.Over = 0
	}
	c = c.Slower(s.Land.Factor)
	lone := c.Redis.PathTrip.Of(1, 1)
	if given := cmp.Or(s.Land.LoneTrip, s.Land.Trip); given > 0 {
		lone = float64(given.Microseconds())
	}
	if s.Land.Trip > 0 {
		c.Redis.Trip = Sized{Call: float64(s.Land.Trip.Microseconds())}
		c.Redis.PathTrip = c.Redis.Trip
	}
	if s.Land.Write > 0 {
		c.MySQL.Write.Call = float64(s.Land.Write.Microseconds())
	}
	w := worked{sale: s, cost: c, lone: lone, window: min(time.Second, s.Budget)}
	w.settle()
	p := Plan{
		Sale: s, Calibration: c.Provenance, SoldOut: w.flow.soldOut, LastRow: w.lastRow(),
		GaveUp: math.Round(w.flow.gaveUp), Unsold: math.Round(w.flow.unsold), Backlog: math.Round(most(w.flow.backlog)),
	}
	for _, stage := range stages() {
		p.Stages = append(p.Stages, Rate{stage, w.flow.total(stage), w.flow.peak(w.flow.of[stage], w.window)})
	}
	p.API, p.Redis, p.Rabbit, p.Consumer, p.MySQL = w.api(), w.redis(), w.rabbit(), w.consumer(), w.mysql()
	p.Hops = w.hops()
	p.Limits = w.limits(p)
	return p, nil
}

func most(list []float64) (most float64) {
	for _, x := range list {
		most = max(most, x)
	}
	return most
}

// Total gives a stage's count.
func (p Plan) Total(stage Stage) float64 {
	for _, r := range p.Stages {
		if r.Stage == stage {
			return r.Total
		}
	}
	return 0
}
