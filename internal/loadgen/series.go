package loadgen

import (
	"context"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"flashsale.dev/seckill/internal/loadgen/buyer"
)

// Point is what happened in one stretch of the run. Counts are of the stretch alone.
type Point struct {
	At       float64                `json:"at"`       // seconds from the beginning to the stretch's end
	Span     float64                `json:"span"`     // its length in seconds
	Arrived  int                    `json:"arrived"`  // buyers who came
	Won      int                    `json:"won"`      // buyers who were told 202 (they go on, and look at their order)
	SoldOut  int                    `json:"soldOut"`  // and those who were told that nothing is left
	Other    int                    `json:"other"`    // who ended otherwise: refused, turned away, out of patience
	Done     int                    `json:"done"`     // buyers who left, in whatever way
	Limited  int                    `json:"limited"`  // answers of 429
	Faults   int                    `json:"faults"`   // answers of 5xx
	Errors   int                    `json:"errors"`   // calls without an answer
	InFlight int                    `json:"inFlight"` // buyers on their way at its end
	Steps    map[buyer.Step]Quarter `json:"steps"`
}

// Quarter is one step in one stretch; times in milliseconds.
type Quarter struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// window is the stretch that is being counted.
type window struct {
	point Point
	times map[buyer.Step]*hdrhistogram.Histogram
}

func newWindow() window { return window{times: map[buyer.Step]*hdrhistogram.Histogram{}} }

func (w *window) took(step buyer.Step, us int64) {
	h := w.times[step]
	if h == nil {
		h = histogram(2)
		w.times[step] = h
	}
	_ = h.RecordValue(us) // it is within the bounds
}

func (w *window) ended(o buyer.Outcome) {
	w.point.Done++
	switch o {
	case buyer.Won: // counted at the 202
	case buyer.SoldOut:
		w.point.SoldOut++
	default:
		w.point.Other++
	}
}

// close makes the point, and begins the next stretch.
func (w *window) close() Point {
	p := w.point
	p.Steps = map[buyer.Step]Quarter{}
	for step, h := range w.times {
		if n := h.TotalCount(); n > 0 {
			p.Steps[step] = Quarter{n, millis(h.ValueAtQuantile(50)), millis(h.ValueAtQuantile(99)), millis(h.Max())}
		}
		h.Reset()
	}
	w.point = Point{}
	return p
}

func millis(us int64) float64 { return float64(us) / 1000 }

// mostPoints bounds the series: when it is full, each two points become one.
const mostPoints = 600

// tick makes a point every so often until ctx ends, and one of the rest.
func (r *recorder) tick(ctx context.Context, every time.Duration, watch func(Point)) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			r.lastWindow(every / 2)
			return
		}
		if p, ok := r.closeWindow(every / 2); ok && watch != nil {
			watch(p)
		}
	}
}

// closeWindow makes a point, unless the stretch is too short for rates of its own: then it goes on.
func (r *recorder) closeWindow(least time.Duration) (Point, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, span := r.stretch()
	if span < least {
		return p, false
	}
	p = r.window.close().at(p)
	r.points = append(r.points, p)
	if len(r.points) >= mostPoints {
		r.points = halve(r.points)
	}
	return p, true
}

// lastWindow makes a point of what is left, or adds it to the point before.
func (r *recorder) lastWindow(least time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, span := r.stretch()
	if span <= 0 { // it ended before it began
		return
	}
	p = r.window.close().at(p)
	if n := len(r.points); n > 0 && span < least {
		r.points[n-1] = r.points[n-1].with(p)
		return
	}
	r.points = append(r.points, p)
}

// stretch is when the one that is being counted began, and how long it is by now. The lock is held.
func (r *recorder) stretch() (Point, time.Duration) {
	last := 0.0
	if n := len(r.points); n > 0 {
		last = r.points[n-1].At
	}
	now := time.Since(r.began).Seconds()
	return Point{At: now, Span: now - last, InFlight: r.onWay}, seconds(now - last)
}

// at gives a point its place.
func (p Point) at(of Point) Point {
	p.At, p.Span, p.InFlight = of.At, of.Span, of.InFlight
	return p
}

// halve makes one point of each two; of their times the worse stands.
func halve(points []Point) []Point {
	half := points[:0]
	for i := 0; i+1 < len(points); i += 2 {
		half = append(half, points[i].with(points[i+1]))
	}
	if len(points)%2 == 1 {
		half = append(half, points[len(points)-1])
	}
	return half
}

// with is this point and the next as one.
func (p Point) with(q Point) Point {
	q.Span += p.Span
	q.Arrived += p.Arrived
	q.Won += p.Won
	q.SoldOut += p.SoldOut
	q.Other += p.Other
	q.Done += p.Done
	q.Limited += p.Limited
	q.Faults += p.Faults
	q.Errors += p.Errors
	for step, a := range p.Steps {
		b := q.Steps[step]
		q.Steps[step] = Quarter{a.Count + b.Count, max(a.P50, b.P50), max(a.P99, b.P99), max(a.Max, b.Max)}
	}
	return q
}
