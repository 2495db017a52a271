package report

import (
	"fmt"

	"flashsale.dev/seckill/internal/loadgen"
	"flashsale.dev/seckill/internal/loadgen/verdict"
)

// schema is the version of the JSON. It grows when a field disappears or changes its meaning; new
// fields may appear at any time.
const schema = 2

// MaxLag is the lag in milliseconds at p99 above which the figures are unreliable.
const MaxLag = 50

// Report is the complete result of a run: its measurements, settings and verdict.
type Report struct {
	loadgen.Result
	Schema    int             `json:"schema"`
	Seconds   float64         `json:"seconds"` // from the first planned start to the last end
	Settings  Settings        `json:"settings"`
	Notes     []string        `json:"notes,omitempty"` // caveats for the reader of the figures
	CutShort  bool            `json:"cutShort"`        // a signal or the time limit ended the load
	Generator Generator       `json:"generator"`
	Verdict   verdict.Verdict `json:"verdict"`
}

// Settings are the plan and the properties of the sale under load.
type Settings struct {
	loadgen.Plan
	Loop     string  `json:"loop"` // "open" or "closed"
	Ramp     float64 `json:"rampSeconds"`
	Stock    int64   `json:"stock"`             // of the sale
	Permits  float64 `json:"permits,omitempty"` // random paths per second; 0 is the API's
	Compress float64 `json:"compress,omitempty"`
}

// Generator is the work of the load generator itself and its delay.
type Generator struct {
	Calls  int64   `json:"calls"`
	LagP99 float64 `json:"lagP99"` // ms
	LagMax float64 `json:"lagMax"` // ms
}

// New assembles a report. cutShort reports that a signal or the time limit ended the load.
func New(s Settings, r loadgen.Result, v verdict.Verdict, cutShort bool) Report {
	r.Started = r.Started.UTC()
	s.Loop, s.Ramp = "closed", s.Plan.Ramp.Seconds()
	if s.Rate > 0 {
		s.Loop = "open"
	}
	lag := r.Of(loadgen.SpanLag)
	return Report{
		Result: r, Schema: schema, Seconds: r.Took.Seconds(), Settings: s, Verdict: v,
		CutShort:  cutShort,
		Generator: Generator{Calls: r.Calls(), LagP99: lag.P99, LagMax: lag.Max},
	}
}

// Passed reports whether every buyer was started and every rule holds. A load that ended early
// proves nothing about the buyers that did not start.
func (r Report) Passed() bool { return r.Verdict.OK && !r.CutShort && r.Arrived >= r.Planned }

// Headline is the result in one line.
func (r Report) Headline() string {
	rules, violated := len(r.Verdict.Rules), 0
	for _, rule := range r.Verdict.Rules {
		if !rule.OK {
			violated++
		}
	}
	switch {
	case !r.Verdict.OK:
		return fmt.Sprintf("FAIL: %d of %d rules violated", violated, rules)
	case !r.Passed():
		return fmt.Sprintf("FAIL: the load ended early after %d of %d buyers; all rules hold",
			r.Arrived, r.Planned)
	default:
		return fmt.Sprintf("PASS: %d buyers, %d orders accepted, all %d rules hold",
			r.Arrived, r.Verdict.Promised, rules)
	}
}

// BuyerRate is the number of started buyers per second.
func (r Report) BuyerRate() float64 { return float64(r.Arrived) / max(r.Seconds, 1e-9) }

// CallRate is the number of calls per second.
func (r Report) CallRate() float64 { return float64(r.Generator.Calls) / max(r.Seconds, 1e-9) }
