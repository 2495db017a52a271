package main

import (
	"fmt"
	"io"
	"os"

	"flashsale.dev/seckill/internal/loadgen/report"
)

// settings are the flags as the report shows them.
func (p *loadTest) settings() report.Settings {
	s := report.Settings{
		Addresses: p.bases, GoodsID: p.sale.goodsID, Loop: "closed", Buyers: p.buyers, Users: p.users, Rate: p.rate, Ramp: p.ramp.Seconds(),
		Spike: p.spike, Impatient: p.impatient, Hostile: p.hostile, Quantity: p.quantity, Stock: p.sale.stock, Permits: p.permits, Seed: p.seed,
	}
	if p.rate > 0 {
		s.Loop = "open"
	}
	if p.profile != "" {
		s.Compress = p.compress
	}
	return s
}

// notes are caveats for the reader of the figures.
func (p *loadTest) notes(r report.Report) []string {
	var notes []string
	if p.profile != "" {
		notes = append(notes, p.meaning())
	}
	if r.Generator.LagP99 > report.MaxLag {
		notes = append(notes, fmt.Sprintf(
			"the generator lagged (p99 %.0f ms): it sent fewer calls than planned, and the latency of the first step "+
				"includes its delay", r.Generator.LagP99))
	}
	if p.goods != "" {
		notes = append(notes, "other clients may have bought from this sale: rules that need exclusive use were skipped")
	}
	if p.cutShort {
		notes = append(notes, "the load ended early")
	}
	return notes
}

// write writes the report to standard output and to the files of -json and -html.
func (p *loadTest) write(r report.Report, stdout, stderr io.Writer) error {
	table := stdout
	if p.json == "-" {
		table = stderr
	}
	if err := r.Table(table); err != nil {
		return err
	}
	if p.json == "-" {
		if err := r.JSON(stdout); err != nil {
			return err
		}
	} else if err := toFile(p.json, r.JSON); err != nil {
		return err
	}
	return toFile(p.html, r.HTML)
}

// toFile writes a file unless its name is empty.
func toFile(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if err := write(f); err != nil {
		_ = f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
