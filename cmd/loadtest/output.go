package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"flashsale.dev/seckill/internal/loadgen"
	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/loadgen/report"
)

// settings returns the flags that the report shows.
func (p *loadTest) settings() report.Settings {
	s := report.Settings{Plan: p.Plan, Stock: p.stock, Permits: p.permits}
	if p.profile != "" {
		s.Compress = p.compress
	}
	return s
}

// notes returns caveats for the reader of the figures. They are part of the report, because figures
// are passed on without the command that made them.
func (p *loadTest) notes(r report.Report) (notes []string) {
	if p.profile != "" {
		notes = append(notes, p.compressionNote())
	}
	if lag := r.Generator.LagP99; lag > report.MaxLag {
		notes = append(notes, fmt.Sprintf("the generator lagged (p99 %.0f ms): it sent fewer "+
			"calls than planned, and the latency of the first step includes its delay", lag))
	}
	if p.goods != "" {
		notes = append(notes, "other clients may buy too: rules of exclusive use were skipped")
	}
	if r.CutShort {
		notes = append(notes, "the load ended early")
	}
	return notes
}

// write writes the report to standard output and to the files of -json and -html. The file - is
// standard output. The text then moves to standard error, so that a pipe reads only JSON.
func (p *loadTest) write(r report.Report, stdout, stderr io.Writer) error {
	text := stdout
	if p.json == "-" {
		text = stderr
	}
	err := errors.Join(
		r.Table(text), toFile(p.json, stdout, r.JSON), toFile(p.html, stdout, r.HTML))
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// toFile writes to a file, to standard output for -, or nothing for "". Closing may report that the
// disk is full, so its error counts.
func toFile(name string, stdout io.Writer, write func(io.Writer) error) error {
	switch name {
	case "":
		return nil
	case "-":
		return write(stdout)
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// progressSeconds is the time between two lines of progress.
const progressSeconds = 5

// progress returns a function that prints the newest point, at most one line per progressSeconds.
// That interval shows that the load is running, and keeps the log of a CI run short.
func progress(out io.Writer, buyers int) func(loadgen.Point) {
	done, next := 0, 0.0
	return func(at loadgen.Point) {
		done += at.Done
		if at.At < next {
			return
		}
		next = at.At + progressSeconds
		per := func(n int) float64 { return float64(n) / at.Span }
		fmt.Fprintf(out, "%6.1f s  %d of %d buyers done, %.0f started/s, %.0f won/s, %.0f sold out/s, "+
			"%d active, 429 %.0f/s, 5xx %.0f/s, no answer %.0f/s, path p99 %.1f ms, buy p99 %.1f ms\n",
			at.At, done, buyers, per(at.Arrived), per(at.Won), per(at.SoldOut), at.InFlight,
			per(at.Limited), per(at.Faults), per(at.Errors),
			at.Steps[buyer.StepPath].P99, at.Steps[buyer.StepBuy].P99)
	}
}
