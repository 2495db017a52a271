package loadgen

import (
	"slices"
	"time"

	"flashsale.dev/seckill/internal/loadgen/buyer"
)

// Result is the measurements of a run and the buyers that a verdict checks. Its JSON is part of the
// report, so a field may not disappear or change its meaning without a new schema number.
type Result struct {
	Started  time.Time                      `json:"began"`
	Took     time.Duration                  `json:"-"`
	Planned  int                            `json:"planned"` // buyers of the plan
	Arrived  int                            `json:"came"`    // buyers who started
	Outcomes map[Kind]map[buyer.Outcome]int `json:"outcomes"`
	Steps    []Step                         `json:"steps"`
	Points   []Point                        `json:"points"`
	Holders  []Holder                       `json:"-"`
	Breaches []string                       `json:"-"` // hostile calls that succeeded
	Places   []Place                        `json:"-"` // in the line of a waiting room
	// Commitment is the first one to the seed of the draw that was published.
	Commitment string `json:"-"`
}

// Place is what a buyer saw of its place in a line, and how it ended.
type Place struct {
	buyer.Place
	BuyerID int64
	Outcome buyer.Outcome
	OrderSn string
}

// Step summarises the calls of a step, or a span. Times are in milliseconds.
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
	Answers map[string]int64 `json:"answers,omitempty"` // by reason, or "error: …"; spans have none
}

// Holder is a buyer with a 202, or with an order that may exist without a 202. The verdict reads
// the orders of exactly these buyers from the API.
type Holder struct {
	BuyerID   int64
	OrderSns  []string // each once
	Quantity  int64
	Uncertain bool
	Doubled   bool // one path got two order numbers
}

// newHolder keeps the order numbers of a result and finds paths with two of them.
func newHolder(result buyer.Result) Holder {
	holder := Holder{
		BuyerID: result.BuyerID, Quantity: result.Quantity, Uncertain: result.Uncertain,
	}
	byPath := map[string]string{}
	for _, a := range result.Accepted {
		if was, known := byPath[a.Path]; known && was != a.OrderSn {
			holder.Doubled = true
		}
		byPath[a.Path] = a.OrderSn
		if !slices.Contains(holder.OrderSns, a.OrderSn) {
			holder.OrderSns = append(holder.OrderSns, a.OrderSn)
		}
	}
	return holder
}

// Calls counts the calls of all steps.
func (r Result) Calls() (n int64) {
	for _, s := range r.Steps {
		for _, count := range s.Answers {
			n += count
		}
	}
	return n
}

// Of returns a step; it is zero if the step has no calls.
func (r Result) Of(step buyer.Step) Step {
	for _, s := range r.Steps {
		if s.Step == step {
			return s
		}
	}
	return Step{}
}

// Count counts the finished buyers of all kinds with an outcome.
func (r Result) Count(o buyer.Outcome) (n int) {
	for _, of := range r.Outcomes {
		n += of[o]
	}
	return n
}

// result summarises the recorded calls, in the order in which a report shows the steps.
func (r *recorder) result(began time.Time, took time.Duration, planned int) Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := Result{
		Started: began, Took: took, Planned: planned, Arrived: r.arrivals, Outcomes: r.outcomes,
		Points: r.points, Holders: r.holders, Breaches: r.breaches, Places: r.places,
	}
	for _, step := range []buyer.Step{
		buyer.StepJoin, buyer.StepPlace, buyer.StepLeave, buyer.StepPay,
		buyer.StepPath, buyer.StepBuy, buyer.StepOrder, buyer.StepForge, buyer.StepReadUnknown,
		buyer.StepReplay, buyer.StepReadOther, buyer.StepCancelOther,
		SpanDecision, SpanWritten, SpanLag,
	} {
		if s := r.steps[step]; s != nil {
			out.Steps = append(out.Steps, s.summary(step, took))
		}
	}
	return out
}

// summary computes the quantiles of a step.
func (s *stepCount) summary(step buyer.Step, took time.Duration) Step {
	at := func(q float64) float64 { return millis(s.times.ValueAtQuantile(q)) }
	n := s.times.TotalCount()
	return Step{
		Step: step, Count: n, Rate: float64(n) / max(took.Seconds(), 1e-9),
		P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: millis(s.times.Max()),
		Faults: s.faults, Errors: s.errors, Answers: s.answers,
	}
}
