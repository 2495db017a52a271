package metrics

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/waitingroom/admission"
)

// TestLines_StallIsALineThatMayMove checks the sums, and that a line counts as stalled only while
// somebody waits for units that nobody was promised.
func TestLines_StallIsALineThatMayMove(t *testing.T) {
	c := NewConsumer("")
	now := time.Now()
	sale := seckill.Sale{
		GoodsID: 1, PerBuyerLimit: 2, Rate: seckill.Rate{PermitsPerSecond: 1},
		EndAt: now.Add(time.Hour),
	}
	see := func(after time.Duration, s admission.State) {
		now = now.Add(after)
		s.Now = now
		c.Lines.moved(sale, s, now)
	}
	stalled := func(want string) {
		t.Helper()
		require.Contains(t, scrape(c.Registry), "seckill_waiting_room_stalled_seconds "+want+"\n")
	}
	free := admission.State{
		Seed: "s", Joined: 10, Admitted: 4, Available: 6,
		Details: admission.Details{Called: 2, Missed: 1},
	}
	see(0, free)
	see(21*time.Second, free)
	stalled("20")
	for _, line := range []string{
		"seckill_waiting_room_joined 10", "seckill_waiting_room_waiting 6",
		"seckill_waiting_room_admitted 2", "seckill_waiting_room_missed 1",
	} {
		require.Contains(t, scrape(c.Registry), line)
	}
	moved := free
	moved.Admitted++
	see(time.Second, moved)
	stalled("0")
	promised := moved
	promised.Called = 3
	see(20*time.Second, promised)
	see(20*time.Second, promised)
	stalled("0")
	see(20*time.Second, moved)
	stalled("0")
	see(0, admission.State{})
	stalled("0")
	see(0, free)
	see(21*time.Second, free)
	stalled("20")
	sale.StartAt = now.Add(time.Minute) // moved later; the script calls nobody before
	see(20*time.Second, free)
	stalled("0")
	see(41*time.Second, free)
	see(21*time.Second, free)
	stalled("20")
	sale.EndAt = now.Add(time.Second) // the script calls nobody after the end
	see(10*time.Second, free)
	stalled("0")
}

// TestLines_LineThatIsNotSeenAgainIsForgotten checks the gauges after the last sale with a line was
// closed: nobody reports a line then.
func TestLines_LineThatIsNotSeenAgainIsForgotten(t *testing.T) {
	c := NewConsumer("")
	now := time.Now()
	sale := seckill.Sale{
		GoodsID: 1, PerBuyerLimit: 1, Rate: seckill.Rate{PermitsPerSecond: 1}, EndAt: now,
	}
	state := admission.State{
		Now: now.Add(-time.Hour), Seed: "s", Joined: 10, Admitted: 4, Available: 6,
		Details: admission.Details{Called: 2, Missed: 1},
	}
	c.Lines.moved(sale, state, now.Add(-lineLife-time.Minute))
	c.Lines.moved(sale, state, now.Add(-lineLife-time.Second))
	for _, name := range []string{"joined", "waiting", "admitted", "missed", "stalled_seconds"} {
		require.Contains(t, scrape(c.Registry), "seckill_waiting_room_"+name+" 0\n")
	}
}
