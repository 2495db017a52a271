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

// Schema is the version of the JSON. It is raised when a field goes or changes its meaning; new fields may come at any time.
const Schema = 1

// Report is everything that is told of a run.
type Report struct {
	Schema    int                                    `json:"schema"`
	Began     time.Time                              `json:"began"`
	Seconds   float64                                `json:"seconds"` // from the first buyer's time to the last one's end
	Settings  Settings                               `json:"settings"`
	Notes     []string                               `json:"notes,omitempty"` // what a reader must know to read the figures right
	Planned   int                                    `json:"planned"`         // buyers who should have come
	Came      int                                    `json:"came"`
	Outcomes  map[loadgen.Kind]map[buyer.Outcome]int `json:"outcomes"`
	Steps     []loadgen.Step                         `json:"steps"`
	Points    []loadgen.Point                        `json:"points"`
	Generator Generator                              `json:"generator"`
	Verdict   verdict.Verdict                        `json:"verdict"`
}

// Settings are what was asked for.
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
	Permits   float64  `json:"permits,omitempty"` // random paths per second; the API's default if left out
	Compress  float64  `json:"compress,omitempty"`
	Seed      uint64   `json:"seed"`
}

// Generator is what the load cost its own process, and how far it fell behind.
type Generator struct {
	CPUSeconds    float64 `json:"cpuSeconds"`
	CPUMicrosCall float64 `json:"cpuMicrosPerCall"`
	Calls         int64   `json:"calls"`
	LagP99        float64 `json:"lagP99"` // ms
	LagMax        float64 `json:"lagMax"` // ms
}

// New puts a report together.
func New(s Settings, r loadgen.Result, v verdict.Verdict, cpu time.Duration) Report {
	out := Report{
		Schema: Schema, Began: r.Began.UTC(), Seconds: r.Took.Seconds(), Settings: s, Planned: r.Planned, Came: r.Came,
		Outcomes: r.Outcomes, Steps: r.Steps, Points: r.Points, Verdict: v,
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

// Lagged is from how many milliseconds of lag on, at the 99th percentile, the generator's own figures are in doubt.
const Lagged = 50

// JSON writes it for programs.
func (r Report) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
