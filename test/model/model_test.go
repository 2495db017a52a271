package model

import (
	"flag"
	"strings"
	"testing"
)

var (
	schedules = flag.Int("schedules", 2000, "how many schedules with all rules on")
	within    = flag.Uint64("within", 4000, "how many schedules a rule left out may survive at most")
	seed      = flag.Uint64("seed", 0, "the first seed; with -schedules 1, its trace")
)

func TestAllRules(t *testing.T) {
	bad := 0
	for s := *seed; s < *seed+uint64(*schedules); s++ {
		if v := Run(s, None, false); v != nil {
			t.Error(v)
			if bad++; bad == 1 {
				v = Run(s, None, true)
				t.Log(strings.Join(v.Trace, "\n"))
			}
			if bad > 20 {
				t.FailNow()
			}
		}
	}
}

func TestEachRuleIsNeeded(t *testing.T) {
	for _, r := range Rules() {
		t.Run(r.String(), func(t *testing.T) {
			for s := uint64(0); s < *within; s++ {
				if v := Run(*seed+s, r, false); v != nil {
					t.Logf("broken after %d: %v", s+1, v)
					return
				}
			}
			t.Errorf("%d schedules found nothing", *within)
		})
	}
}
