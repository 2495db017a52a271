package faults

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/loadgen/buyer"
	"flashsale.dev/seckill/internal/testing/buyers"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/test/faults/check"
)

// maxShown is how many violations a run prints: the first ones show the cause.
const maxShown = 20

// reportVerdict prints the run's line, adds it to the run log, and fails the test where a
// guarantee does not hold.
func reportVerdict(t *testing.T, f fault, seed uint64, v check.Verdict, recovery time.Duration,
	report buyers.Report,
) {
	line := fmt.Sprintf("fault=%s seed=%d orders=%d lost=%d doubled=%d oversold=%d broken=%d "+
		"recovery_ms=%d violations=%d", f.name, seed, v.Orders, v.Lost, v.Doubled, v.Oversold,
		v.Broken, recovery.Milliseconds(), len(v.Violations))
	var on []string
	if clusters := f.options.Topology.String(); clusters != "" {
		on = append(on, clusters)
	}
	if fetched := os.Getenv(servers.EnvFetched); fetched != "" {
		on = append(on, "newest-"+strings.ReplaceAll(fetched, ",", ",newest-"))
	}
	if len(on) > 0 {
		line += " on=" + strings.Join(on, ",")
	}
	fmt.Println("faults:", line)
	t.Logf("%d answers with 503, %d broken connections, %d buyers gave up, %d refused, in %s",
		report.Sum(func(b buyers.Result) int { return b.Unavailable }),
		report.Sum(func(b buyers.Result) int { return b.ConnectionErrors }),
		report.Count(buyer.GaveUp), report.Count(buyer.Refused),
		report.Took.Round(time.Millisecond))
	if *outFlag != "" {
		out := must.Get(os.OpenFile(*outFlag, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644))(t)
		_, err := fmt.Fprintln(out, line)
		require.NoError(t, errors.Join(err, out.Close()))
	}
	for _, violation := range v.Violations[:min(maxShown, len(v.Violations))] {
		t.Errorf("seed %d: %s", seed, violation)
	}
}
