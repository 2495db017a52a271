package main

import (
	"fmt"
	"io"
	"os"

	"flashsale.dev/seckill/internal/loadgen/report"
)

func (p *play) settings() report.Settings {
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

// notes are what a reader must know to read the figures right.
func (p *play) notes(r report.Report) []string {
	var notes []string
	if p.profile != "" {
		notes = append(notes, p.meaning())
	}
	if r.Generator.LagP99 > report.Lagged {
		notes = append(notes, fmt.Sprintf("the generator fell behind (p99 %.0f ms): with the processor to itself it would have asked for more, "+
			"and times of the first step count its delay too", r.Generator.LagP99))
	}
	if p.goods != "" {
		notes = append(notes, "others may have bought of this sale: only what holds all the same was checked")
	}
	if p.cut {
		notes = append(notes, "the load was cut short")
	}
	return notes
}

// tell writes the report wherever it is wanted.
func (p *play) tell(r report.Report, stdout, stderr io.Writer) error {
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

// toFile writes a file where one is wanted.
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
