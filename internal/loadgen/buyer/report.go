package buyer

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// Report is what all buyers of a rush were told.
type Report struct {
	Told  []Told
	Began time.Time
	Took  time.Duration
}

// Count tells how many tries ended so.
func (r Report) Count(o Outcome) int {
	n := 0
	for _, t := range r.Told {
		if t.Outcome == o {
			n++
		}
	}
	return n
}

// Sum adds up a number over all tries.
func (r Report) Sum(of func(Told) int) int {
	n := 0
	for _, t := range r.Told {
		n += of(t)
	}
	return n
}

// Units counts the units that buyers hold a 202 for, and the different buyers who do.
func (r Report) Units() (units int64, buyers int) {
	seen := make(map[int64]bool)
	for _, t := range r.Told {
		if t.Outcome == Won {
			units += t.Quantity
			seen[t.BuyerID] = true
		}
	}
	return units, len(seen)
}

// Quantile gives the time below which so many (0 to 1) of the tries of an outcome stayed; 0 where there is none.
func (r Report) Quantile(q float64, o Outcome, of func(Told) time.Duration) time.Duration {
	var times []time.Duration
	for _, t := range r.Told {
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

// Bought is the time a buyer waited for a yes or a no.
func Bought(t Told) time.Duration { return t.Bought }

// Written is the time from the yes to the order's being in MySQL, as the buyer saw it.
func Written(t Told) time.Duration { return t.Written }

// Table writes the report for people.
func (r Report) Table(w io.Writer) {
	units, buyers := r.Units()
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-28s "+format+"\n", append([]any{name}, args...)...)
	}
	row("asked", "%8d  in %.1f s", len(r.Told), r.Took.Seconds())
	row("won", "%8d  (%d units, %d buyers)", r.Count(Won), units, buyers)
	row("sold out", "%8d", r.Count(SoldOut))
	row("other refusals", "%8d", r.Count(Refused))
	row("gave up", "%8d", r.Count(GaveUp))
	row("told to wait (429)", "%8d times", r.Sum(func(t Told) int { return t.Limited }))
	row("told to come again (503)", "%8d times", r.Sum(func(t Told) int { return t.Busy }))
	row("server faults (5xx)", "%8d", r.Sum(func(t Told) int { return t.Faults }))
	row("orders written", "%8d", r.Sum(written))
	row("to a yes", "median %s, p99 %s", ms(r.Quantile(.5, Won, Bought)), ms(r.Quantile(.99, Won, Bought)))
	row("to a no", "median %s, p99 %s", ms(r.Quantile(.5, SoldOut, Bought)), ms(r.Quantile(.99, SoldOut, Bought)))
	row("from yes to written", "median %s, p99 %s", ms(r.Quantile(.5, Won, Written)), ms(r.Quantile(.99, Won, Written)))
}

func written(t Told) int {
	if t.Status == "created" || t.Status == "paid" {
		return 1
	}
	return 0
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
