package bench

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// atRateFor is how long a lap of atRate purchases is.
const atRateFor = 2 * time.Second

// BenchmarkLatency is how long an accepted purchase takes at half the highest rate, from the moment it should have been sent
// (so that waiting counts), and the same of the floor program at the same rate.
func BenchmarkLatency(b *testing.B) {
	a := newArena(b)
	sale := a.PutUp(b, 10_000_000, 1)
	warm := purchases(b, a.Installation, id(b, sale), boughtEach, inOrder)
	took := play(b, a.APIs[0].Addr, connections, len(warm), http.StatusAccepted, func(i int) []byte { return warm[i] })
	rate := float64(len(warm)) / took.Seconds() / 2
	var ours, floor []time.Duration
	for b.Loop() {
		ours = append(ours, a.atRate(b, sale, a.APIs[0].Addr, rate))
		floor = append(floor, a.atRate(b, a.bare, a.floor, rate))
	}
	ratios := make([]float64, len(ours))
	for i := range ours {
		ratios[i] = float64(ours[i]) / float64(floor[i])
	}
	slices.Sort(ours)
	slices.Sort(floor)
	b.ReportMetric(median(ratios), "of-floor")
	results.note("accepted purchases, 99th percentile at half the highest rate", "≤ 2 × the floor program's", "%v at %s/s; floor program %v; %.2f ×",
		ours[len(ours)/2].Round(10*time.Microsecond), thousands(rate), floor[len(floor)/2].Round(10*time.Microsecond), median(ratios))
}

// atRate buys at a fixed rate and returns the 99th percentile.
func (a *arena) atRate(b *testing.B, goods, addr string, rate float64) time.Duration {
	b.Helper()
	requests := purchases(b, a.Installation, id(b, goods), int(rate*atRateFor.Seconds()), inOrder)
	took := make([]time.Duration, len(requests))
	began := time.Now().Add(200 * time.Millisecond) // the connections are made first
	crowd(b, addr, 4*connections, len(requests), func(c *client, i int) error {
		due := began.Add(time.Duration(float64(i) / rate * float64(time.Second)))
		time.Sleep(time.Until(due))
		err := c.ask(requests[i], http.StatusAccepted)
		took[i] = time.Since(due)
		return err
	})
	written(b, a.store, id(b, goods))
	slices.Sort(took)
	require.NotEmpty(b, took)
	return took[len(took)*99/100]
}
