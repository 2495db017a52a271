package buyer

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// Report holds the results of all buyers of a run.
type Report struct {
	Results []Result
	Started time.Time
	Took    time.Duration
}

// Count counts the results with an outcome.
func (r Report) Count(o Outcome) int {
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

// Units counts the units in accepted purchases and the different buyers who made them.
func (r Report) Units() (units int64, buyers int) {
	seen := make(map[int64]bool)
	for _, t := range r.Results {
		if t.Outcome == Won {
			units += t.Quantity
			seen[t.BuyerID] = true
		}
	}
	return units, len(seen)
}

// Quantile is the q-quantile (0 to 1) of a time over the results with an outcome; 0 without any.
func (r Report) Quantile(q float64, o Outcome, of func(Result) time.Duration) time.Duration {
	var times []time.Duration
	for _, t := range r.Results {
		if t.Outcome == o {
			times = append(times, of(t))
		}
	}
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[min(len(times)-1, int(q*float64(len(times))))]
}

// DecisionTime is the time to the 202 or the refusal, for Quantile.
func DecisionTime(t Result) time.Duration { return t.DecisionTime }

// WriteTime is the time from the 202 until the buyer read the written order, for Quantile.
func WriteTime(t Result) time.Duration { return t.WriteTime }

// Table writes the report as text.
func (r Report) Table(w io.Writer) {
	units, buyers := r.Units()
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-28s "+format+"\n", append([]any{name}, args...)...)
	}
	row("purchases", "%8d  in %.1f s", len(r.Results), r.Took.Seconds())
	row("won", "%8d  (%d units, %d buyers)", r.Count(Won), units, buyers)
	row("sold out", "%8d", r.Count(SoldOut))
	row("other refusals", "%8d", r.Count(Refused))
	row("gave up", "%8d", r.Count(GaveUp))
	row("rate limited (429)", "%8d times", r.Sum(func(t Result) int { return t.Limited }))
	row("unavailable (503)", "%8d times", r.Sum(func(t Result) int { return t.Unavailable }))
	row("server errors (5xx)", "%8d", r.Sum(func(t Result) int { return t.ServerErrors }))
	row("orders written", "%8d", r.Sum(written))
	row("time to 202", "median %s, p99 %s", ms(r.Quantile(.5, Won, DecisionTime)), ms(r.Quantile(.99, Won, DecisionTime)))
	row("time to sold out", "median %s, p99 %s", ms(r.Quantile(.5, SoldOut, DecisionTime)), ms(r.Quantile(.99, SoldOut, DecisionTime)))
	row("from 202 to written", "median %s, p99 %s", ms(r.Quantile(.5, Won, WriteTime)), ms(r.Quantile(.99, Won, WriteTime)))
}

func written(t Result) int {
	if t.Status == "created" || t.Status == "paid" {
		return 1
	}
	return 0
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
