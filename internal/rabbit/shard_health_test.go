package rabbit

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// activeOn is a process that is active on so many of so many shards.
func activeOn(active, shards int) (*balance, []*stream) {
	b := &balance{shards: shards, active: make(map[*stream]bool), given: make(map[string]time.Time)}
	streams := make([]*stream, active)
	for i := range streams {
		streams[i] = &stream{queue: queueName(i)}
		b.has(streams[i])
	}
	return b, streams
}

func TestAProcessKeepsItsShareRoundedUp(t *testing.T) {
	for _, c := range []struct{ shards, active, processes, gives int }{
		{shards: 4, active: 4, processes: 1, gives: 0},
		{shards: 4, active: 4, processes: 0, gives: 0}, // it hears nothing, not even itself
		{shards: 4, active: 4, processes: 2, gives: 2},
		{shards: 4, active: 4, processes: 3, gives: 2},
		{shards: 4, active: 2, processes: 3, gives: 0},
		{shards: 4, active: 4, processes: 9, gives: 3},
		{shards: 1, active: 1, processes: 9, gives: 0},
		{shards: 256, active: 256, processes: 3, gives: 170},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			b, streams := activeOn(c.active, c.shards)
			gives := 0
			for _, st := range streams {
				if b.tooMany(st, c.processes, time.Now()) {
					gives++
				}
			}
			require.Equal(t, c.gives, gives)
		})
	}
}

func TestAShardThatComesStraightBackIsKept(t *testing.T) {
	b, streams := activeOn(2, 2)
	now := time.Now()
	require.True(t, b.tooMany(streams[0], 2, now))
	again := &stream{queue: streams[0].queue}
	b.has(again)
	require.False(t, b.tooMany(again, 2, now.Add(giveAgainAfter/2)), "nobody was in line for it")
	require.True(t, b.tooMany(again, 2, now.Add(2*giveAgainAfter)))
}

func TestAnIdleShardIsNotGivenAway(t *testing.T) {
	b, _ := activeOn(3, 4)
	require.False(t, b.tooMany(&stream{queue: queueName(3)}, 4, time.Now()))
}

func TestSilenceCountsOnlyWhileSomethingWaits(t *testing.T) {
	var s silence
	start := time.Now()
	at := func(d time.Duration) time.Time { return start.Add(d) }
	require.Zero(t, s.look(0, true, at(0)))
	require.Zero(t, s.look(0, true, at(time.Minute)))
	require.Equal(t, time.Second, s.look(0, false, at(time.Minute+time.Second)))
	require.Equal(t, 3*time.Second, s.look(0, false, at(time.Minute+3*time.Second)))
	require.Zero(t, s.look(1, false, at(time.Minute+4*time.Second)), "something was confirmed")
}
