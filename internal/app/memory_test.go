package app

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCalm_BeginsOnceAfterAPeak(t *testing.T) {
	var c calm
	for range 100 {
		require.False(t, c.begins(0), "no collection yet")
	}
	for cycles := range uint64(20) {
		require.False(t, c.begins(cycles+1), "during the peak")
	}
	given := 0
	for range 100 {
		if c.begins(20) {
			given++
		}
	}
	require.Equal(t, 1, given)
	require.False(t, c.begins(21))
}

func TestMemoryLimit_FollowsTheLiveHeap(t *testing.T) {
	require.EqualValues(t, minMemoryLimit, memoryLimit(10<<20))
	require.EqualValues(t, 1750<<20, memoryLimit(1000<<20), "a large heap has room")
}
