package buyers

import (
	"net/http"
	"time"

	"flashsale.dev/seckill/internal/loadgen/buyer"
)

// Result is the result of one purchase, with counts of its failed calls.
type Result struct {
	buyer.Result
	ServerErrors     int // answers of 5xx other than 503
	Unavailable      int // answers of 503
	NoRetryAfter     int // answers of 503 without Retry-After
	ConnectionErrors int // calls without a readable answer
}

// count counts a call. The calls of one purchase do not overlap.
func (r *Result) count(c buyer.Call) {
	switch {
	case c.Err != nil:
		r.ConnectionErrors++
	case c.Answer.Status == http.StatusServiceUnavailable:
		r.Unavailable++
		if c.Answer.RetryAfter <= 0 {
			r.NoRetryAfter++
		}
	case c.Answer.Status >= 500:
		r.ServerErrors++
	}
}

// Report holds the results of all buyers of a run.
type Report struct {
	Results []Result
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
func (r Report) Sum(of func(Result) int) int {
	n := 0
	for _, t := range r.Results {
		n += of(t)
	}
	return n
}
