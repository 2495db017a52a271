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
	sale := seckill.Sale{GoodsID: 1, PerBuyerLimit: 2, Rate: seckill.Rate{PermitsPerSecond: 1}}
	now := time.Unix(1000, 0)
	see := func(after time.Duration, s admission.State) {
		now = now.Add(after)
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
}
