package buyers

import (
	"time"

	"flashsale.dev/seckill/internal/loadgen/buyer"
)

// Report holds the results of all buyers of a run.
type Report struct {
	Results []buyer.Result
	Started time.Time
	Took    time.Duration
}

// Count returns the number of results with an outcome.
func (r Report) Count(o buyer.Outcome) int {
	n := 0
	for _, t := range r.Results {
		if t.Outcome == o {
			n++
		}
	}
	return n
}

// Sum adds a number over all results.
func (r Report) Sum(of func(buyer.Result) int) int {
	n := 0
	for _, t := range r.Results {
		n += of(t)
	}
	return n
}
