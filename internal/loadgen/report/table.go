package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"flashsale.dev/seckill/internal/loadgen"
	"flashsale.dev/seckill/internal/loadgen/buyer"
)

// Table writes the report as text. Its first line is PASS or FAIL with a summary.
func (r Report) Table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	seconds := max(r.Seconds, 1e-9)
	if _, err := fmt.Fprintln(w, r.headline()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	fmt.Fprintf(t, "\n\t%d buyers in %.1f s (%.0f/s), %d calls (%.0f/s)\n\n", r.Arrived, r.Seconds, float64(r.Arrived)/seconds,
		r.Generator.Calls, float64(r.Generator.Calls)/seconds)
	fmt.Fprintln(t, "step\tcount\tper s\tp50 ms\tp90\tp99\tp99.9\tmax\t5xx\tno answer\t")
	for _, s := range r.Steps {
		fmt.Fprintf(t, "%s\t%d\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%d\t%d\t\n",
			s.Step, s.Count, s.Rate, s.P50, s.P90, s.P99, s.P999, s.Max, s.Faults, s.Errors)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	var b strings.Builder
	b.WriteString("\nanswers\n")
	for _, s := range r.Steps {
		if len(s.Answers) > 0 {
			fmt.Fprintf(&b, "  %-8s %s\n", s.Step, counts(s.Answers))
		}
	}
	b.WriteString("\nbuyers\n")
	for _, kind := range []loadgen.Kind{loadgen.Polite, loadgen.Impatient, loadgen.Hostile} {
		if of := r.Outcomes[kind]; len(of) > 0 {
			fmt.Fprintf(&b, "  %-10s %s\n", kind, counts(of))
		}
	}
	fmt.Fprintf(&b, "\ngenerator  %.1f s of CPU time, %.1f µs per call; lag %.1f ms at p99, %.1f ms at most\n",
		r.Generator.CPUSeconds, r.Generator.CPUMicrosCall, r.Generator.LagP99, r.Generator.LagMax)
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "note       %s\n", note)
	}
	b.WriteString(r.verdict())
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// headline is the result in one line.
func (r Report) headline() string {
	violated := 0
	for _, rule := range r.Verdict.Rules {
		if !rule.OK {
			violated++
		}
	}
	switch {
	case !r.Verdict.OK:
		return fmt.Sprintf("FAIL: %d of %d rules violated", violated, len(r.Verdict.Rules))
	case !r.Passed():
		return fmt.Sprintf("FAIL: the load ended early after %d of %d buyers; all rules hold", r.Arrived, r.Planned)
	default:
		return fmt.Sprintf("PASS: %d buyers, %d orders accepted, all %d rules hold",
			r.Arrived, r.Verdict.Promised, len(r.Verdict.Rules))
	}
}

// Passed reports whether every buyer was played and every rule holds.
func (r Report) Passed() bool { return r.Verdict.OK && !r.CutShort && r.Arrived >= r.Planned }

// verdict lists the rules and the differences.
func (r Report) verdict() string {
	v := r.Verdict
	var b strings.Builder
	fmt.Fprintf(&b, "\nverdict    %d accepted, %d found without a 202; orders: %s\n", v.Promised, v.Found, counts(v.Orders))
	l := v.Ledger
	fmt.Fprintf(&b, "           ledger: total %d = available %d + pending %d + sold %d; ", l.Total, l.Available, l.Pending, l.Sold)
	fmt.Fprintf(&b, "database: stock %d, active %d; balanced: %t\n", l.Database.Stock, l.Database.Active, l.Balanced)
	for _, rule := range v.Rules {
		mark := "ok  "
		if !rule.OK {
			mark = fmt.Sprintf("VIOLATED %d times:", rule.Count)
		}
		fmt.Fprintf(&b, "  %s %s\n", mark, rule.Name)
	}
	for _, d := range v.Differences {
		fmt.Fprintf(&b, "  - %s\n", d)
	}
	if v.More > 0 {
		fmt.Fprintf(&b, "  - and %d more\n", v.More)
	}
	return b.String()
}

// counts lists names with their counts, the largest first.
func counts[K ~string, V int | int64](of map[K]V) string {
	keys := slices.SortedFunc(maps.Keys(of), func(a, b K) int {
		return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b))
	})
	parts := make([]string, 0, len(keys))
	for _, k := range keys {
		parts = append(parts, fmt.Sprintf("%s %d", k, of[k]))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// Won is the number of buyers with a 202.
func (r Report) Won() int {
	n := 0
	for _, of := range r.Outcomes {
		n += of[buyer.Won]
	}
	return n
}
