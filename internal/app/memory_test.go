package app

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMemoryIsGivenBackOnceAfterARush(t *testing.T) {
	var c calm
	for range 100 {
		require.False(t, c.sets(0), "nothing was collected yet")
	}
	for cycles := range uint64(20) {
		require.False(t, c.sets(cycles+1), "in the rush")
	}
	given := 0
	for range 100 {
		if c.sets(20) {
			given++
		}
	}
	require.Equal(t, 1, given)
	require.False(t, c.sets(21))
}

func TestTheLimitFollowsWhatLives(t *testing.T) {
	require.EqualValues(t, softMemory, memoryLimit(10<<20))
	require.EqualValues(t, 1750<<20, memoryLimit(1000<<20), "a large node is not squeezed")
}
