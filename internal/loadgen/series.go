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
			r.addPoint(every/2, true)
			return
		}
		if p, ok := r.addPoint(every/2, false); ok && onPoint != nil {
			onPoint(p)
		}
	}
}

// addPoint ends the current interval and adds its point. An interval shorter than least is too
// short for a rate: it continues, or merges into the point before it if it is the last one.
func (r *recorder) addPoint(least time.Duration, last bool) (Point, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, n, before := r.point, len(r.points), 0.0
	if n > 0 {
		before = r.points[n-1].At
	}
	p.At = time.Since(r.began).Seconds()
	p.Span = p.At - before
	short := p.Span < least.Seconds()
	if p.Span <= 0 || short && !last { // a run may end before its start time
		return p, false
	}
	p.Steps = map[buyer.Step]Interval{}
	for step, h := range r.intervals {
		if h.TotalCount() > 0 {
			p.Steps[step] = interval(h)
		}
		h.Reset()
	}
	r.point = Point{InFlight: p.InFlight}
	if short && n > 0 {
		r.points[n-1] = r.points[n-1].with(p)
		return p, true
	}
	r.points = append(r.points, p)
	if len(r.points) >= maxPoints {
		r.points = halve(r.points)
	}
	return p, true
}

func interval(h *hdrhistogram.Histogram) Interval {
	return Interval{
		Count: h.TotalCount(), P50: millis(h.ValueAtQuantile(50)), P99: millis(h.ValueAtQuantile(99)),
		Max: millis(h.Max()),
	}
}

func millis(us int64) float64 { return float64(us) / 1000 }

// halve merges each two points into one, in place.
func halve(points []Point) []Point {
	half := points[:0]
	for i, p := range points {
		if i%2 == 0 {
			half = append(half, p)
		} else {
			half[i/2] = half[i/2].with(p)
		}
	}
	return half
}

// with merges a point and its successor; the larger times stand.
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
		q.Steps[step] = Interval{
			Count: a.Count + b.Count, P50: max(a.P50, b.P50), P99: max(a.P99, b.P99), Max: max(a.Max, b.Max),
		}
	}
	return q
}
