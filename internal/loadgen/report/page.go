package report

import (
	_ "embed" // for the page below
	"fmt"
	"html/template"
	"io"
	"math"

	"flashsale.dev/seckill/internal/loadgen"
	"flashsale.dev/seckill/internal/loadgen/buyer"
)

//go:embed page.gohtml
var pageText string

// figure is a chart of the page with the names of its lines.
type figure struct {
	Title, Unit string
	Names       []string
	SVG         template.HTML
}

// HTML writes one self-contained page: no script, no request.
func (r Report) HTML(w io.Writer) error {
	page, err := template.New("page").Funcs(template.FuncMap{
		"ms":     func(v float64) string { return fmt.Sprintf("%.2f", v) },
		"whole":  func(v float64) string { return fmt.Sprintf("%.0f", v) },
		"counts": counts[string, int64],
		"ended":  counts[buyer.Outcome, int],
		"orders": counts[string, int],
	}).Parse(pageText)
	if err != nil {
		return fmt.Errorf("read the page: %w", err)
	}
	var figures []figure
	for _, c := range r.charts() {
		f := figure{Title: c.title, Unit: c.unit, SVG: c.svg()}
		for _, l := range c.lines {
			f.Names = append(f.Names, l.name)
		}
		figures = append(figures, f)
	}
	if err := page.Execute(w, struct {
		Report
		Headline string
		Figures  []figure
		PerSec   float64
	}{r, r.headline(), figures, float64(r.Arrived) / max(r.Seconds, 1e-9)}); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// charts are the time series of the page.
func (r Report) charts() []chart {
	rate := func(name string, of func(loadgen.Point) int) line {
		return r.line(name, func(p loadgen.Point) float64 { return float64(of(p)) / p.Span })
	}
	step := func(name string, s buyer.Step, of func(loadgen.Interval) float64) line {
		return r.line(name, func(p loadgen.Point) float64 {
			if q, ok := p.Steps[s]; ok {
				return max(of(q), .01) // a logarithmic axis has no zero
			}
			return math.NaN()
		})
	}
	p50 := func(q loadgen.Interval) float64 { return q.P50 }
	p99 := func(q loadgen.Interval) float64 { return q.P99 }
	return []chart{
		{title: "Buyers over time", unit: "per second", lines: []line{
			rate("started", func(p loadgen.Point) int { return p.Arrived }),
			rate("won (202)", func(p loadgen.Point) int { return p.Won }),
			rate("sold out", func(p loadgen.Point) int { return p.SoldOut }),
			rate("other outcome", func(p loadgen.Point) int { return p.Other }),
		}},
		{title: "Waiting time over time", unit: "ms, logarithmic", log: true, lines: []line{
			step("path p50", buyer.StepPath, p50), step("path p99", buyer.StepPath, p99),
			step("buy p50", buyer.StepBuy, p50), step("buy p99", buyer.StepBuy, p99),
			step("written p50", loadgen.SpanWritten, p50), step("written p99", loadgen.SpanWritten, p99),
		}},
		{title: "Rate limiting and errors", unit: "per second", lines: []line{
			rate("429", func(p loadgen.Point) int { return p.Limited }),
			rate("5xx", func(p loadgen.Point) int { return p.Faults }),
			rate("no answer", func(p loadgen.Point) int { return p.Errors }),
		}},
		{title: "Active buyers", unit: "buyers", lines: []line{
			r.line("in flight", func(p loadgen.Point) float64 { return float64(p.InFlight) }),
		}},
	}
}

// line is a value of each point over time.
func (r Report) line(name string, of func(loadgen.Point) float64) line {
	l := line{name: name}
	for _, p := range r.Points {
		l.x, l.y = append(l.x, p.At), append(l.y, of(p))
	}
	return l
}
