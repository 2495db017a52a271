package model

import (
	"flag"
	"strings"
	"testing"
)

var (
	schedules = flag.Int("schedules", 4000/fewer, "schedules to run with all rules kept")
	within    = flag.Int("within", 150000, "schedules that a left-out rule may survive at most")
	seed      = flag.Uint64("seed", 0, "the seed of the first schedule")
	table     = flag.Bool("table", false, "count violations among all of -within schedules")
	search    = flag.Bool("search", false, "search for first violations instead of known seeds")
	trace     = flag.Bool("shortest", false, "print the shortest trace that is found")
)

// TestAllRulesKept_ViolateNoGuarantee runs random schedules with every rule.
func TestAllRulesKept_ViolateNoGuarantee(t *testing.T) {
	for s := range uint64(*schedules) {
		if v := Run(*seed+s, None, false); v != nil {
			t.Fatalf("%v\n%s", v, traceOf(*seed+s, None))
		}
	}
	t.Logf("%d schedules from seed %d violated no guarantee", *schedules, *seed)
}

// TestEachRule_LeftOutViolatesGuarantee finds a violation for each rule that is left out. A rule
// without a violation is either superfluous or not modelled.
func TestEachRule_LeftOutViolatesGuarantee(t *testing.T) {
	for _, r := range Rules() {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			f := find(r)
			if f.first == nil {
				t.Fatalf("%d schedules violated nothing", *within)
			}
			what := f.first.Guarantee + ": " + f.first.What + "; " + f.first.Fault
			t.Logf("| %s | %d | %s |", r, f.first.Seed, what)
			if *table {
				t.Logf("%d of %d schedules", f.violations, *within)
			}
			if *trace {
				t.Log("\n" + traceOf(f.shortest.Seed, r))
			}
		})
	}
}

// TestSeed_RepeatsItsSchedule requires a repeated seed to find the same violation.
func TestSeed_RepeatsItsSchedule(t *testing.T) {
	for _, r := range []Rule{Barrier, Outbox, Lease} {
		first := find(r).first
		again := Run(first.Seed, r, true)
		if again == nil || again.Error() != first.Error() {
			t.Errorf("without %q: first %v, then %v", r, first, again)
		}
	}
}

type found struct {
	first, shortest *Violation
	violations      int
}

// find runs schedules until the first violation, or all of them where the flags ask for more.
func find(r Rule) found {
	var f found
	if !*search && !*table && !*trace {
		if v := Run(witnesses[r], r, true); v != nil {
			return found{first: v, shortest: v}
		}
	}
	for n := range *within {
		v := Run(*seed+uint64(n), r, *trace)
		if v == nil {
			continue
		}
		if f.violations++; f.first == nil {
			f.first = v
		}
		if f.shortest == nil || len(v.Trace) < len(f.shortest.Trace) {
			f.shortest = v
		}
		if !*table && !*trace {
			break
		}
	}
	return f
}

func traceOf(seed uint64, r Rule) string {
	v := Run(seed, r, true)
	return v.Error() + "\n" + strings.Join(v.Trace, "\n")
}
