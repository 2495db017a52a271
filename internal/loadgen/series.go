package loadgen

import (
	"context"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"flashsale.dev/seckill/internal/loadgen/buyer"
)

// Point is one interval of the run. Its counts cover the interval alone.
type Point struct {
	At       float64                 `json:"at"`       // seconds from the start to the interval's end
	Span     float64                 `json:"span"`     // its length in seconds
	Arrived  int                     `json:"arrived"`  // buyers who started
	Won      int                     `json:"won"`      // buyers with their first 202; they poll on
	SoldOut  int                     `json:"soldOut"`  // buyers refused with SOLD_OUT
	Other    int                     `json:"other"`    // buyers with any other outcome
	Done     int                     `json:"done"`     // buyers who finished
	Limited  int                     `json:"limited"`  // answers of 429
	Faults   int                     `json:"faults"`   // answers of 5xx
	Errors   int                     `json:"errors"`   // calls without an answer
	InFlight int                     `json:"inFlight"` // active buyers at its end
	Steps    map[buyer.Step]Interval `json:"steps"`
}

// Interval is one step in one interval; times in milliseconds.
type Interval struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// window counts the current interval.
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
	_ = h.RecordValue(us) // the value is within bounds
}

func (w *window) ended(o buyer.Outcome) {
	w.point.Done++
	switch o {
	case buyer.Won: // counted at its 202
	case buyer.SoldOut:
		w.point.SoldOut++
	default:
		w.point.Other++
	}
}

// close returns the point and starts the next interval.
func (w *window) close() Point {
	p := w.point
	p.Steps = map[buyer.Step]Interval{}
	for step, h := range w.times {
		if n := h.TotalCount(); n > 0 {
			p.Steps[step] = Interval{n, millis(h.ValueAtQuantile(50)), millis(h.ValueAtQuantile(99)), millis(h.Max())}
		}
		h.Reset()
	}
	w.point = Point{}
	return p
}

func millis(us int64) float64 { return float64(us) / 1000 }

// maxPoints bounds the series: a full series merges each two points into one.
const maxPoints = 600

// tick adds a point at each interval until ctx ends, then one for the rest.
func (r *recorder) tick(ctx context.Context, every time.Duration, onPoint func(Point)) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			r.lastWindow(every / 2)
			return
		}
		if p, ok := r.closeWindow(every / 2); ok && onPoint != nil {
			onPoint(p)
		}
	}
}

// closeWindow adds a point unless the interval is shorter than least, too short for a rate.
func (r *recorder) closeWindow(least time.Duration) (Point, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, span := r.current()
	if span < least {
		return p, false
	}
	p = r.window.close().at(p)
	r.points = append(r.points, p)
	if len(r.points) >= maxPoints {
		r.points = halve(r.points)
	}
	return p, true
}

// lastWindow adds a point for the rest, or merges a short rest into the last point.
func (r *recorder) lastWindow(least time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, span := r.current()
	if span <= 0 { // the run ended before its start time
		return
	}
	p = r.window.close().at(p)
	if n := len(r.points); n > 0 && span < least {
		r.points[n-1] = r.points[n-1].with(p)
		return
	}
	r.points = append(r.points, p)
}

// current is the position and the length of the current interval. The caller holds the lock.
func (r *recorder) current() (Point, time.Duration) {
	last := 0.0
	if n := len(r.points); n > 0 {
		last = r.points[n-1].At
	}
	now := time.Since(r.began).Seconds()
	return Point{At: now, Span: now - last, InFlight: r.inFlight}, seconds(now - last)
}

// at sets the position of a point.
func (p Point) at(of Point) Point {
	p.At, p.Span, p.InFlight = of.At, of.Span, of.InFlight
	return p
}

// halve merges each two points into one; the larger times stand.
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

// with merges a point and its successor.
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
		q.Steps[step] = Interval{a.Count + b.Count, max(a.P50, b.P50), max(a.P99, b.P99), max(a.Max, b.Max)}
	}
	return q
}
