package loadgen

import (
	"maps"
	"slices"
	"time"

	"flashsale.dev/seckill/internal/loadgen/buyer"
)

// Result is what a run measured, and whom it must be checked with.
type Result struct {
	Began    time.Time
	Took     time.Duration
	Planned  int // buyers who should have come
	Came     int // who did
	Outcomes map[Kind]map[buyer.Outcome]int
	Steps    []Step
	Points   []Point
	Kept     []Kept
	Breaches []string // the first of them, word for word
	Breached int      // how many a thief got away with
}

// Step is what became of all calls of one step, or of one span. Times in milliseconds.
type Step struct {
	Step    buyer.Step       `json:"step"`
	Count   int64            `json:"count"`
	Rate    float64          `json:"rate"` // per second of the whole run
	P50     float64          `json:"p50"`
	P90     float64          `json:"p90"`
	P99     float64          `json:"p99"`
	P999    float64          `json:"p999"`
	Max     float64          `json:"max"`
	Faults  int64            `json:"faults"`            // answers of 5xx
	Errors  int64            `json:"errors"`            // calls without an answer
	Answers map[string]int64 `json:"answers,omitempty"` // by reason, or "error: …"
}

// Kept is a buyer who was told of an order, or may have one without having been told.
type Kept struct {
	BuyerID  int64
	OrderSns []string // each once
	Quantity int64
	Status   string // the first order's, when the buyer last looked
	Unsure   bool
	Doubled  bool // one path was answered with two numbers
}

func keep(t buyer.Told) Kept {
	k := Kept{BuyerID: t.BuyerID, Quantity: t.Quantity, Status: t.Status, Unsure: t.Unsure}
	byPath := map[string]string{}
	for _, h := range t.Heard {
		if was, known := byPath[h.Path]; known && was != h.OrderSn {
			k.Doubled = true
		}
		byPath[h.Path] = h.OrderSn
		if !slices.Contains(k.OrderSns, h.OrderSn) {
			k.OrderSns = append(k.OrderSns, h.OrderSn)
		}
	}
	return k
}

// Calls counts the calls of all steps.
func (r Result) Calls() int64 {
	var n int64
	for _, s := range r.Steps {
		if !s.span() {
			n += s.Count
		}
	}
	return n
}

// Of finds a step; false where it was never taken.
func (r Result) Of(step buyer.Step) (Step, bool) {
	i := slices.IndexFunc(r.Steps, func(s Step) bool { return s.Step == step })
	if i < 0 {
		return Step{}, false
	}
	return r.Steps[i], true
}

// Count tells how many buyers of all kinds ended so.
func (r Result) Count(o buyer.Outcome) int {
	n := 0
	for _, of := range r.Outcomes {
		n += of[o]
	}
	return n
}

// span tells the spans from the calls.
func (s Step) span() bool {
	return slices.Contains([]buyer.Step{SpanWay, SpanWritten, SpanLag}, s.Step)
}

// order of the steps in a report.
func order() []buyer.Step {
	return []buyer.Step{
		buyer.StepPath, buyer.StepBuy, buyer.StepOrder, buyer.StepForge, buyer.StepInvent, buyer.StepReplay, buyer.StepSpy, buyer.StepSpoil,
		SpanWay, SpanWritten, SpanLag,
	}
}

// result is what has been counted.
func (r *recorder) result(began time.Time, took time.Duration, planned int) Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := Result{
		Began: began, Took: took, Planned: planned, Came: r.came, Outcomes: maps.Clone(r.outcomes),
		Points: r.points, Kept: r.kept, Breaches: r.breaches, Breached: r.breached,
	}
	for _, step := range order() {
		if s := r.steps[step]; s != nil {
			out.Steps = append(out.Steps, s.summary(step, took))
		}
	}
	return out
}

func (s *stepCount) summary(step buyer.Step, took time.Duration) Step {
	at := func(q float64) float64 { return millis(s.times.ValueAtQuantile(q)) }
	return Step{
		Step: step, Count: s.times.TotalCount(), Rate: float64(s.times.TotalCount()) / max(took.Seconds(), 1e-9),
		P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: millis(s.times.Max()),
		Faults: s.faults, Errors: s.errors, Answers: s.answers,
	}
}
