package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"flashsale.dev/seckill/internal/capacity"
)

// planCmd is the capacity model's command. docs/how-to/scale.md tells what it counts and how well that was met.
type planCmd struct {
	Buyers   int64         `default:"100000" help:"Buyers in all."`
	Units    int64         `default:"10000" help:"Units on sale."`
	PerBuyer int64         `default:"1" help:"Units that each buyer takes."`
	Shape    string        `enum:"at-once,even,ramp,normal" default:"ramp" help:"How the buyers come: at-once, even, ramp, normal."`
	Over     time.Duration `default:"10s" help:"Time in which they come: all of them, or of a normal shape the middle 95 %."`
	Come     []float64     `help:"How many come in each of equal parts of --over, as a comma list: last time's curve, say. It takes the shape's place."`
	Think    time.Duration `default:"1s" help:"Time from the random path to the purchase."`
	Retries  int           `default:"5" help:"How often a buyer who is told to wait comes again, a second later."`
	Polls    float64       `default:"3" help:"Looks at the sale's page of each buyer before it presses, 2 s apart."`
	Looks    float64       `default:"2" help:"Looks at each order that no event stream follows."`
	Streams  float64       `default:"0" help:"Share of the orders that an event stream follows, 0 to 1."`
	Budget   time.Duration `default:"1s" help:"Within which an answer must come: buyers who press at once are answered over so long."`

	Permits float64       `default:"1000" help:"Random paths a second that the sale allows."`
	Burst   time.Duration `default:"1s" help:"Of permits that pile up."`
	Wait    time.Duration `default:"1s" help:"Of permits that may be booked ahead."`

	Calibration string        `help:"File of what a piece of work costs, as make calibrate writes it; the built-in one if empty."`
	Factor      float64       `default:"1" help:"Of the calibration's processor times: 0.5 is a machine twice as fast."`
	Cores       float64       `default:"4" help:"Processors of one API node."`
	NodeMemory  float64       `default:"8192" help:"Memory of one API node, in MB."`
	Nic         float64       `default:"10" help:"Network of each host, in Gbit/s."`
	Use         float64       `default:"0.6" help:"Share of a processor, memory or network that may be used at the peak."`
	Nodes       int           `default:"0" help:"API nodes; as many as are needed if 0."`
	Edge        bool          `help:"An edge holds the buyers' connections, and asks the nodes over a thousand each."`
	Buckets     int           `default:"0" help:"Redis shards that the stock is split over; as many as are needed if 0."`
	OrderShards int           `env:"SECKILL_ORDER_SHARDS" default:"4" help:"Order queues; each has one consumer that writes."`
	Trip        time.Duration `default:"0s" help:"Of a call from a node to Redis and back, waiting for a processor included; as calibrated if 0."`
	LoneTrip    time.Duration `default:"0s" help:"The same where little else is to do; as --trip if 0."`
	Write       time.Duration `default:"0s" help:"Of a transaction that writes orders, in the mean (seckill_batch_duration_seconds); as calibrated if 0."`
	BatchLinger time.Duration `env:"SECKILL_BATCH_LINGER" default:"10ms" help:"Longest wait for a batch to fill."`
	BatchSize   float64       `env:"SECKILL_BATCH_SIZE" default:"500" help:"Most orders in one transaction."`
	BacklogAge  time.Duration `env:"SECKILL_MAX_BACKLOG_AGE" default:"10s" help:"Age of the backlog from which on nothing more is promised; 0 is any."`
}

func (c *planCmd) sale() capacity.Sale {
	s := capacity.Sale{
		Buyers: c.Buyers, Units: c.Units, Quantity: c.PerBuyer, Shape: capacity.Shape(c.Shape), Over: c.Over, Think: c.Think,
		Retries: c.Retries, Polls: c.Polls, Looks: c.Looks, Streams: c.Streams, Budget: c.Budget,
		Permits: c.Permits, Burst: c.Burst, Wait: c.Wait,
		Land: capacity.Land{
			Factor: c.Factor, Cores: c.Cores, NodeMB: c.NodeMemory, NICBits: c.Nic * 1e9, Use: c.Use, Nodes: c.Nodes, Edge: c.Edge, Buckets: c.Buckets, Trip: c.Trip, LoneTrip: c.LoneTrip,
			Queues: c.OrderShards, Write: c.Write, Linger: c.BatchLinger, BatchSize: c.BatchSize, BacklogAge: c.BacklogAge,
		},
	}
	if len(c.Come) > 0 {
		s.Shape, s.Come = capacity.Given, c.Come
	}
	return s
}

// Run prints the plan: a table, or all of it as JSON (times of the sale in nanoseconds, as Go writes them).
func (c *planCmd) Run(s *stage) error {
	costs, err := c.costs()
	if err != nil {
		return usage(err)
	}
	plan, err := capacity.Make(c.sale(), costs)
	if err != nil {
		return usage(err)
	}
	var text strings.Builder
	if err := plan.Text(&text); err != nil {
		return err
	}
	return s.print(plan, "%s", strings.TrimSuffix(text.String(), "\n"))
}

func (c *planCmd) costs() (capacity.Calibration, error) {
	if c.Calibration == "" {
		return capacity.BuiltIn()
	}
	text, err := os.ReadFile(c.Calibration)
	if err != nil {
		return capacity.Calibration{}, fmt.Errorf("read the calibration: %w", err)
	}
	return capacity.ParseCalibration(text)
}
