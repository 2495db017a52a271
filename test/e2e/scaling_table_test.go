//go:build measure

package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"

	"flashsale.dev/seckill/internal/testing/buyers"
	"flashsale.dev/seckill/internal/testing/installation"
)

// TestScaling_Table runs the same rush over 1, 2, 4 and 8 APIs with 1 to 4 consumers and prints the
// table of docs/how-to/scale.md. It takes a minute and a half:
// go test -tags measure ./test/e2e -run Scaling_Table.
func TestScaling_Table(t *testing.T) {
	fmt.Fprintln(os.Stdout,
		"| APIs | consumers | Redis calls per request | paths beyond rate × time "+
			"| bound | API memory, most |\n|--:|--:|--:|--:|--:|--:|")
	for _, n := range [][2]int{{1, 1}, {2, 2}, {4, 3}, {8, 4}} {
		t.Run(fmt.Sprintf("%d APIs", n[0]), func(t *testing.T) { rushOver(t, n[0], n[1]) })
	}
}

func rushOver(t *testing.T, apis, consumers int) {
	const units = 2400
	r := installation.Start(t, suite,
		installation.Options{APIs: apis, Consumers: consumers, Hosts: true})
	c := beginRush(t, r, units, mostRate,
		buyers.Plan{Buyers: 16_000, Concurrency: 3000, Spread: 6 * time.Second})
	c.requireSoldOut(t, units)
	c.requireOnly503(t)
	seen := c.balancer.seen()
	calls := installation.RedisCalls(t, r.RedisClient(t)) - c.calls
	undecided, memory := 0.0, 0.0
	for _, p := range r.APIs {
		undecided += undecidedBy(t, p)
		memory = max(memory, p.Memory(t, "VmHWM"))
	}
	c.requireWithinRate(t, undecided)
	fmt.Fprintf(os.Stdout, "| %d | %d | %.3f | %.0f | %.0f | %.0f MB |\n", apis, consumers,
		float64(calls)/float64(seen.requests), seen.beyondRate(c.rate),
		c.rate+float64(apis*leases), memory)
}
