package loadgen

import (
	"time"

	"flashsale.dev/seckill/internal/loadgen/buyer"
)

// Point is one interval of the run. Its counts cover the interval alone. Means over a whole run
// would hide the first second of a sale, which has the highest load.
type Point struct {
	At       float64                 `json:"at"`       // seconds from start to interval's end
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

// tick adds a point at each interval. It ends at the first interval after done, so that the last
// point covers a whole interval too.
func (r *recorder) tick(done <-chan struct{}, every time.Duration, onPoint func(Point)) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for ended := false; !ended; {
		<-ticker.C
		last := false
		select {
		case <-done:
			last = true
		default:
		}
		p, ok := r.addPoint(every / 2)
		ended = last && (ok || p.Span <= 0) // else the rest needs one more interval
		if ok && onPoint != nil {
			onPoint(p)
		}
	}
}

// addPoint ends the current interval and adds its point. An interval shorter than least, such as
// one before the start time of the run, is too short for a rate and continues.
func (r *recorder) addPoint(least time.Duration) (Point, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, before := r.point, 0.0
	if n := len(r.points); n > 0 {
		before = r.points[n-1].At
	}
	p.At = time.Since(r.began).Seconds()
	p.Span = p.At - before
	if p.Span < least.Seconds() {
		return p, false
	}
	p.Steps = map[buyer.Step]Interval{}
	for step, h := range r.intervals {
		if n := h.TotalCount(); n > 0 {
			p50, p99 := millis(h.ValueAtQuantile(50)), millis(h.ValueAtQuantile(99))
			p.Steps[step] = Interval{Count: n, P50: p50, P99: p99, Max: millis(h.Max())}
		}
		h.Reset()
	}
	r.point, r.points = Point{InFlight: p.InFlight}, append(r.points, p)
	return p, true
}

func millis(us int64) float64 { return float64(us) / 1000 }
