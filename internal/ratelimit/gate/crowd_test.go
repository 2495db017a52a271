package gate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"flashsale.dev/seckill/internal/ratelimit"
	"flashsale.dev/seckill/internal/ratelimit/gate"
	"flashsale.dev/seckill/internal/testing/property"
	"flashsale.dev/seckill/internal/testing/testclock"
)

// TestGate_CrowdsAreBoundedAndServed sends 1 to 64 callers at once to each of 1 to 4 nodes, on a
// test clock. Some callers wait, some leave and refund their permits. No window has more than the
// burst, rate × T and the leases. Where nobody leaves and callers ask for twice the rate or more,
// they get 95 % of it, less what is left in the bucket at the end.
func TestGate_CrowdsAreBoundedAndServed(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		nodes := rapid.IntRange(1, 4).Draw(rt, "nodes")
		callers := rapid.SampledFrom([]int{1, 2, 7, 24, 64}).Draw(rt, "callers")
		rate := rapid.SampledFrom([]int{10, 100, 1000}).Draw(rt, "rate")
		burst := rapid.SampledFrom([]int{1, 5, 10, 100}).Draw(rt, "burst")
		wait := rapid.SampledFrom([]int{0, 50, 1000}).Draw(rt, "wait ms")
		leases := rapid.SampledFrom([]int{0, 10}).Draw(rt, "leases")
		leaving := rapid.SampledFrom([]int{0, 0, 3, 9}).Draw(rt, "tenths that leave")
		clock := testclock.New()
		store := ratelimit.NewMemory(clock.Now)
		yaml := fmt.Sprintf(`{rules: [{name: r, by: [goods], algorithm: reserve, burst: %d,
			permitsPerSecond: %d, maxWait: %dms, leases: %d}]}`, burst, rate, wait, leases)
		crowds := make([]*crowd, nodes)
		for i := range crowds {
			crowds[i] = &crowd{Store: store}
			crowds[i].gate = gate.New(book(rt, yaml), crowds[i],
				gate.Options{Now: clock.Now, Deadline: time.Minute})
		}
		capacity := burst + wait*rate/1000
		// Callers ask twice as often as permits accumulate, and before a quarter of them do.
		step := time.Second / time.Duration(rate) *
			time.Duration(max(1, min(nodes*callers/2, capacity/4)))
		if nodes*callers < 2 {
			step /= 2
		}
		const rounds = 60
		var good []time.Time
		for range rounds {
			for _, c := range crowds {
				for _, out := range c.rush(t, callers) {
					if rapid.IntRange(1, 10).Draw(rt, "leaves") <= leaving {
						out.Refund()
						continue
					}
					good = append(good, clock.Now().Add(out.Decision.Wait))
				}
				c.gate.Close() // waits for the refunds
			}
			clock.Add(step)
		}
		slices.SortFunc(good, time.Time.Compare)
		most := float64(burst)
		if leases > 1 {
			most += float64(nodes * leases)
		}
		require.LessOrEqual(rt, mostInAnyWindow(good, float64(rate)), most+1e-6)
		if leaving == 0 {
			total := float64(capacity) + float64(rate)*(rounds*step).Seconds()
			require.GreaterOrEqual(rt, float64(len(good)),
				0.95*total-float64(capacity+nodes*leases))
		}
	})
}
