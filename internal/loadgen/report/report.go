package report

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"flashsale.dev/seckill/internal/loadgen"
	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/loadgen/verdict"
)

// Schema is the version of the JSON. It grows when a field disappears or changes its meaning; new
// fields may appear at any time.
const Schema = 2

// Report is the complete result of a run.
type Report struct {
	Schema    int                                    `json:"schema"`
	Started   time.Time                              `json:"began"`
	Seconds   float64                                `json:"seconds"` // from the first planned start to the last end
	Settings  Settings                               `json:"settings"`
	Notes     []string                               `json:"notes,omitempty"` // caveats for the reader of the figures
	Planned   int                                    `json:"planned"`         // buyers of the plan
	Arrived   int                                    `json:"came"`
	CutShort  bool                                   `json:"cutShort"`
	Outcomes  map[loadgen.Kind]map[buyer.Outcome]int `json:"outcomes"`
	Steps     []loadgen.Step                         `json:"steps"`
	Points    []loadgen.Point                        `json:"points"`
	Generator Generator                              `json:"generator"`
	Verdict   verdict.Verdict                        `json:"verdict"`
}

// Settings are the flags of the run.
type Settings struct {
	Addresses []string `json:"addresses"`
	GoodsID   string   `json:"goodsId"`
	Loop      string   `json:"loop"` // "open" or "closed"
	Buyers    int      `json:"buyers"`
	Users     int      `json:"users,omitempty"`
	Rate      float64  `json:"rate,omitempty"` // arrivals per second
	Ramp      float64  `json:"rampSeconds"`
	Spike     int      `json:"spike"`
	Impatient float64  `json:"impatient"`
	Hostile   float64  `json:"hostile"`
	Quantity  int64    `json:"quantity"`
	Stock     int64    `json:"stock"`             // of the sale
	Permits   float64  `json:"permits,omitempty"` // random paths per second; left out: the API's default
	Compress  float64  `json:"compress,omitempty"`
	Seed      uint64   `json:"seed"`
}

// Generator is the cost of the load generator itself and its delay.
type Generator struct {
	CPUSeconds    float64 `json:"cpuSeconds"`
	CPUMicrosCall float64 `json:"cpuMicrosPerCall"`
	Calls         int64   `json:"calls"`
	LagP99        float64 `json:"lagP99"` // ms
	LagMax        float64 `json:"lagMax"` // ms
}

// New assembles a report; cpu is the CPU time of this process during the load, and cutShort says that
// a signal or the time limit ended the load.
func New(s Settings, r loadgen.Result, v verdict.Verdict, cpu time.Duration, cutShort bool) Report {
	out := Report{
		Schema: Schema, Started: r.Started.UTC(), Seconds: r.Took.Seconds(), Settings: s, Planned: r.Planned, Arrived: r.Arrived,
		Outcomes: r.Outcomes, Steps: r.Steps, Points: r.Points, Verdict: v, CutShort: cutShort,
		Generator: Generator{CPUSeconds: cpu.Seconds(), Calls: r.Calls()},
	}
	if r.Calls() > 0 {
		out.Generator.CPUMicrosCall = float64(cpu.Microseconds()) / float64(r.Calls())
	}
	if lag, ok := r.Of(loadgen.SpanLag); ok {
		out.Generator.LagP99, out.Generator.LagMax = lag.P99, lag.Max
	}
	return out
}

// MaxLag is the lag in milliseconds at p99 above which the figures are unreliable.
const MaxLag = 50

// JSON writes the report for programs.
func (r Report) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
