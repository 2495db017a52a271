package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"flashsale.dev/seckill/internal/capacity"
)

// planCmd prints what a sale costs. docs/how-to/scale.md explains the table.
type planCmd struct {
	Buyers   float64       `default:"100000" help:"Buyers in all."`
	Units    float64       `default:"10000" help:"Units on sale."`
	PerBuyer float64       `default:"1" help:"Units that each buyer takes."`
	Over     time.Duration `default:"10s" help:"Time in which the buyers arrive."`
	Permits  float64       `default:"1000" help:"Random paths per second that the sale's rate allows."`
	Polls    float64       `default:"3" help:"Views of the sale's page per buyer."`
	Waits    float64       `default:"1" help:"429 answers per buyer."`
	Queries  float64       `default:"2" help:"Status queries per order that no event stream follows."`
	Streams  float64       `default:"0" help:"Share of the orders that an event stream follows, 0 to 1."`
	Peak     float64       `default:"2" help:"Busiest second divided by the mean second."`

	CallSize  float64 `default:"2" help:"Reservations per Redis call: the mean of seckill_reserve_batch_size."`
	BatchSize float64 `default:"50" help:"Orders per transaction: the mean of seckill_write_batch_size."`
	Cores     float64 `default:"4" help:"Processors of one host."`
	Use       float64 `default:"0.6" help:"Share of a processor that the peak may use."`

	Calibration string `help:"File of costs, as make calibrate writes it; the built-in costs if empty."`
}

// Run prints the plan as a table, or as JSON.
func (c *planCmd) Run(s *session) error {
	costs, err := c.costs()
	if err != nil {
		return usage(err)
	}
	plan, err := capacity.Make(capacity.Sale{
		Buyers: c.Buyers, Units: c.Units, PerBuyer: c.PerBuyer, Over: c.Over, Permits: c.Permits,
		Polls: c.Polls, Waits: c.Waits, Queries: c.Queries, Streams: c.Streams, Peak: c.Peak,
		CallSize: c.CallSize, BatchSize: c.BatchSize, Cores: c.Cores, Use: c.Use,
	}, costs)
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
