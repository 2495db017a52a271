package report

import (
	"fmt"
	"math"
	"strings"

	"flashsale.dev/seckill/internal/loadgen"
	"flashsale.dev/seckill/internal/loadgen/buyer"
)

// chart is one time series figure. The page's template draws it as SVG in the colours of the style
// sheet, so it follows dark and light mode. Chart libraries fix the colours in the drawing.
type chart struct {
	Title, Unit string
	Lines       []line
	X, Y        []tick
}

// line is one series; its values are NaN where it has a gap.
type line struct {
	Name  string
	value func(loadgen.Point) float64
	Path  string // the drawing, in SVG path syntax
}

// tick is a labelled position on an axis.
type tick struct {
	At    float64
	Label string
}

// Charts are the time series of the page.
func (r Report) Charts() []chart {
	rate := func(name string, count func(loadgen.Point) int) line {
		return line{Name: name, value: func(p loadgen.Point) float64 {
			return float64(count(p)) / p.Span
		}}
	}
	time := func(s buyer.Step, name string, quantile func(loadgen.Interval) float64) line {
		return line{Name: string(s) + " " + name, value: func(p loadgen.Point) float64 {
			if q, ok := p.Steps[s]; ok {
				return quantile(q)
			}
			return math.NaN()
		}}
	}
	var times []line
	for _, s := range []buyer.Step{buyer.StepPath, buyer.StepBuy, loadgen.SpanWritten} {
		times = append(times, time(s, "p50", func(q loadgen.Interval) float64 { return q.P50 }),
			time(s, "p99", func(q loadgen.Interval) float64 { return q.P99 }))
	}
	return []chart{
		r.chart("Buyers over time", "per second", false,
			rate("started", func(p loadgen.Point) int { return p.Arrived }),
			rate("won (202)", func(p loadgen.Point) int { return p.Won }),
			rate("sold out", func(p loadgen.Point) int { return p.SoldOut }),
			rate("other outcome", func(p loadgen.Point) int { return p.Other })),
		r.chart("Waiting time over time", "ms, logarithmic", true, times...),
		r.chart("Rate limiting and errors", "per second", false,
			rate("429", func(p loadgen.Point) int { return p.Limited }),
			rate("5xx", func(p loadgen.Point) int { return p.Faults }),
			rate("no answer", func(p loadgen.Point) int { return p.Errors })),
		r.chart("Active buyers", "buyers", false,
			line{Name: "in flight", value: func(p loadgen.Point) float64 {
				return float64(p.InFlight)
			}}),
	}
}

// chart scales the axes to the points of all lines and draws the lines. The coordinates fit the
// template's view box of 900 by 280 units, with margins for the labels. All lines of a figure share
// its axes, so that their heights can be compared.
func (r Report) chart(title, unit string, log bool, lines ...line) chart {
	x := scale{to: 1, low: 64, high: 884}
	y := scale{to: 1, low: 240, high: 16}
	for _, p := range r.Points {
		x.to = max(x.to, p.At)
		for _, l := range lines {
			if v := l.value(p); v > y.to { // false for NaN
				y.to = v
			}
		}
	}
	if log {
		y.from, y.to = minLog, math.Pow(10, math.Ceil(math.Log10(y.to)))
	}
	for i := range lines {
		lines[i].Path = lines[i].path(r.Points, x, y)
	}
	return chart{Title: title, Unit: unit, Lines: lines, X: x.ticks(), Y: y.ticks()}
}

// path joins the points; NaN starts a new segment. The empty stroke h0 makes a single point
// visible.
func (l line) path(points []loadgen.Point, x, y scale) string {
	var b strings.Builder
	pen := "M%.1f %.1fh0"
	for _, p := range points {
		v := l.value(p)
		if math.IsNaN(v) {
			pen = "M%.1f %.1fh0"
			continue
		}
		fmt.Fprintf(&b, pen, x.at(p.At), y.at(v))
		pen = "L%.1f %.1f"
	}
	return b.String()
}

// minLog is the lower end of a logarithmic axis, which has no zero.
const minLog = .1

// scale maps values to SVG coordinates. It is logarithmic if it starts above zero.
type scale struct {
	from, to  float64 // values
	low, high float64 // coordinates
}

// at is the coordinate of a value. Values below the logarithmic axis lie on its end.
func (s scale) at(v float64) float64 {
	part := v / s.to
	if s.from > 0 {
		part = math.Log(max(v, s.from)/s.from) / math.Log(s.to/s.from)
	}
	return s.low + part*(s.high-s.low)
}

// ticks are powers of ten, or at most six steps of 1, 2, 4 or 8 times a power of ten.
func (s scale) ticks() (ticks []tick) {
	add := func(v float64) {
		ticks = append(ticks, tick{At: s.at(v), Label: fmt.Sprintf("%.6g", v)})
	}
	if s.from > 0 {
		for v := s.from; v <= s.to*1.001; v *= 10 {
			add(v)
		}
		return ticks
	}
	step := math.Pow(10, math.Floor(math.Log10(s.to/2)))
	for s.to/step > 6 {
		step *= 2
	}
	for v := 0.0; v <= s.to*1.001; v += step {
		add(v)
	}
	return ticks
}
