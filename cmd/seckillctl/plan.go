package main

import (
	"fmt"
	"os"
	"strings"

	"flashsale.dev/seckill/internal/capacity"
)

// planCmd prints what a sale costs. docs/how-to/scale.md explains the table.
type planCmd struct {
	capacity.Sale
	Calibration string `help:"File of costs, as make calibrate writes it; the built-in costs if empty."`
}

// Run prints the plan as a table, or as JSON. A wrong number is a wrong command line, whichever
// package finds it.
func (c *planCmd) Run(s *session) error {
	costs, err := c.costs()
	if err != nil {
		return usage(err)
	}
	plan, err := capacity.Make(c.Sale, costs)
	if err != nil {
		return usage(err)
	}
	var text strings.Builder
	if err := plan.Text(&text); err != nil {
		return err
	}
	return s.print(plan, "%s", strings.TrimSuffix(text.String(), "\n"))
}

// costs reads the calibration of -calibration, or the built-in one.
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
