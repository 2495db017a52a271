package model

import (
	"flag"
	"fmt"
	"strings"
	"testing"
)

var (
	schedules = flag.Int("schedules", 4000/fewer, "how many schedules to run with all rules on")
	within    = flag.Int("within", 50000, "how many schedules a rule left out may survive at most")
	seed      = flag.Uint64("seed", 0, "the seed of the first schedule")
	table     = flag.Bool("table", false, "count the broken ones among all of -within schedules, as rows of docs/model.md")
	search    = flag.Bool("search", false, "look for each rule's first violation from -seed on, whatever seeds are known")
	trace     = flag.Bool("shortest", false, "print the shortest trace that is found")
)

// With every rule kept no schedule breaks a guarantee, whatever single thing goes wrong in it.
func TestAllRulesKept(t *testing.T) {
	for s := range uint64(*schedules) {
		if v := Run(*seed+s, None, false); v != nil {
			t.Fatalf("%v\n%s", v, traceOf(*seed+s, None))
		}
	}
	t.Logf("%d schedules from seed %d, none broke a guarantee", *schedules, *seed)
}

// A rule that can be left out without anything breaking is either not needed or not modelled.
func TestEachRuleIsNeeded(t *testing.T) {
	for _, r := range Rules() {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			f := find(r)
			if f.first == nil {
				t.Fatalf("%d schedules found nothing", *within)
			}
			t.Logf("| %s | %d | %s | %s; %s |", r, f.after, f.share(), f.first.Guarantee+": "+f.first.What, f.first.Fault)
			if *trace {
				t.Log("\n" + traceOf(f.shortest.Seed, r))
			}
		})
	}
}

// One seed is one schedule: a violation can be looked at again.
func TestSeedsRepeat(t *testing.T) {
	for _, r := range []Rule{Barrier, Outbox, LeaseCheck} {
		first := find(r).first
		again := Run(first.Seed, r, true)
		if again == nil || again.Error() != first.Error() {
			t.Errorf("without %q: first %v, then %v", r, first, again)
		}
	}
}

type found struct {
	first, shortest *Violation
	after, broken   int
}

// find runs until the first violation, or through all where the rest is wanted too.
func find(r Rule) found {
	var f found
	if !*search && !*table && !*trace {
		if v := Run(witnesses[r], r, true); v != nil {
			return found{first: v, shortest: v, after: int(witnesses[r]) + 1}
		}
	}
	for n := range *within {
		v := Run(*seed+uint64(n), r, *trace)
		if v == nil {
			continue
		}
		if f.broken++; f.first == nil {
			f.first, f.after = v, n+1
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

func (f found) share() string {
	if !*table {
		return "-"
	}
	return fmt.Sprintf("%.2f %%", 100*float64(f.broken)/float64(*within))
}

func traceOf(seed uint64, r Rule) string {
	v := Run(seed, r, true)
	return v.Error() + "\n" + strings.Join(v.Trace, "\n")
}
