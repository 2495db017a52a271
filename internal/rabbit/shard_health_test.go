package rabbit

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStallTimer_RunsOnlyWhileMessagesAreInFlight(t *testing.T) {
	var s stallTimer
	start := time.Now()
	at := func(d time.Duration) time.Time { return start.Add(d) }
	require.Zero(t, s.elapsed(0, true, at(0)))
	require.Zero(t, s.elapsed(0, true, at(time.Minute)))
	require.Equal(t, time.Second, s.elapsed(0, false, at(time.Minute+time.Second)))
	require.Equal(t, 3*time.Second, s.elapsed(0, false, at(time.Minute+3*time.Second)))
	require.Zero(t, s.elapsed(1, false, at(time.Minute+4*time.Second)), "a message was confirmed")
}

// TestConsumerPriority_SpreadsShardsAndMovesOnlyThoseOfALeaver checks that processes prefer about
// equally many shards. When one process leaves, the others keep the shards that they prefer.
func TestConsumerPriority_SpreadsShardsAndMovesOnlyThoseOfALeaver(t *testing.T) {
	const shards, processes = 300, 3
	preferred := func(n int) (by [shards]int) {
		for shard := range shards {
			for p := range n {
				if consumerPriority(fmt.Sprint(p),
					shard) > consumerPriority(fmt.Sprint(by[shard]), shard) {
					by[shard] = p
				}
			}
		}
		return by
	}
	all, without := preferred(processes), preferred(processes-1)
	count := map[int]int{}
	for shard, p := range all {
		count[p]++
		require.GreaterOrEqual(t, consumerPriority(fmt.Sprint(p), shard), int32(0))
		if p < processes-1 {
			require.Equal(t, p, without[shard], "shard %d moved although its process stayed", shard)
		}
	}
	for p := range processes {
		require.InDelta(t, shards/processes, count[p], shards/10, "%v", count)
	}
}
