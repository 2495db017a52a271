package faults

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/test/faults/check"
)

// shown is how many violations a run prints: the first ones tell the cause.
const shown = 20

// tell prints the run's one line, adds it to the file, and fails the run where a guarantee was broken.
func tell(t *testing.T, h harm, seed uint64, v check.Verdict, recovery time.Duration, r buyer.Report) {
	t.Helper()
	line := fmt.Sprintf("fault=%s seed=%d orders=%d lost=%d doubled=%d oversold=%d broken=%d recovery_ms=%d violations=%d",
		h.name, seed, v.Orders, v.Lost, v.Doubled, v.Oversold, v.Broken, recovery.Milliseconds(), len(v.Violations))
	if on := h.rig.Land.String(); on != "" {
		line += " on=" + on
	}
	fmt.Println("faults:", line)
	t.Logf("%d told to come again (503), %d connections broke, %d gave up, %d refused, in %s",
		r.Sum(func(t buyer.Told) int { return t.Busy }), r.Sum(func(t buyer.Told) int { return t.Broken }),
		r.Count(buyer.GaveUp), r.Count(buyer.Refused), r.Took.Round(time.Millisecond))
	if *outFlag != "" {
		keep(t, line)
	}
	for i, violation := range v.Violations {
		if i < shown {
			t.Errorf("seed %d: %s", seed, violation)
		}
	}
}

func keep(t *testing.T, line string) {
	t.Helper()
	f, err := os.OpenFile(*outFlag, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	_, err = fmt.Fprintln(f, line)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}
