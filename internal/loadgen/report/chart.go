package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
)

// chart draws lines over time as SVG. Its colours come from the page's style sheet, so it follows
// dark and light mode; chart libraries fix the colours in the drawing.
type chart struct {
	title, unit string
	log         bool // the y axis is logarithmic
	lines       []line
}

// line is one series; NaN leaves a gap.
type line struct {
	name string
	x, y []float64
}

// The size of a chart in SVG units; the page scales it.
const (
	width, height            = 900.0, 280.0
	left, right, top, bottom = 64.0, 16.0, 16.0, 40.0
)

// svg draws the chart.
func (c chart) svg() template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, width, height, html.EscapeString(c.title+", "+c.unit))
	xs, ys := c.scales()
	for _, v := range ys.ticks() {
		fmt.Fprintf(&b, `<line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/><text x="%g" y="%.1f" text-anchor="end">%s</text>`,
			left, width-right, ys.at(v), ys.at(v), left-8, ys.at(v)+4, number(v))
	}
	for _, v := range xs.ticks() {
		fmt.Fprintf(&b, `<text x="%.1f" y="%g" text-anchor="middle">%s s</text>`, xs.at(v), height-bottom+20, number(v))
	}
	for i, l := range c.lines {
		fmt.Fprintf(&b, `<path class="line c%d" d="%s"/>`, i, l.path(xs, ys))
		fmt.Fprint(&b, l.dots(i, c.unit, xs, ys))
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String())
}

// path joins the points; NaN starts a new segment.
func (l line) path(xs, ys scale) string {
	var b strings.Builder
	pen := "M"
	for i := range l.x {
		if math.IsNaN(l.y[i]) {
			pen = "M"
			continue
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", pen, xs.at(l.x[i]), ys.at(l.y[i]))
		pen = "L"
	}
	return b.String()
}

// dots carry the value as a tooltip. A long series has too many points for them.
func (l line) dots(i int, unit string, xs, ys scale) string {
	if len(l.x) > 240 {
		return ""
	}
	var b strings.Builder
	for k := range l.x {
		if !math.IsNaN(l.y[k]) {
			fmt.Fprintf(&b, `<circle class="dot c%d" cx="%.1f" cy="%.1f" r="2"><title>%s: %s %s at %s s</title></circle>`,
				i, xs.at(l.x[k]), ys.at(l.y[k]), html.EscapeString(l.name), number(l.y[k]), html.EscapeString(unit), number(l.x[k]))
		}
	}
	return b.String()
}

// scales span all lines; the y axis starts at 0, or at a power of ten.
func (c chart) scales() (x, y scale) {
	x = scale{from: 0, to: 1, low: left, high: width - right}
	y = scale{from: 0, to: 1, low: height - bottom, high: top, log: c.log}
	least := math.Inf(1)
	for _, l := range c.lines {
		for i := range l.x {
			x.to = max(x.to, l.x[i])
			if !math.IsNaN(l.y[i]) {
				y.to = max(y.to, l.y[i])
				least = min(least, l.y[i])
			}
		}
	}
	if c.log {
		y.from = math.Pow(10, math.Floor(math.Log10(min(max(least, .01), 1))))
		y.to = max(10*y.from, math.Pow(10, math.Ceil(math.Log10(y.to))))
	}
	return x, y
}
