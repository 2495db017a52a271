package rabbit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHeld_CountsMessagesUntilTheyAreAcknowledged(t *testing.T) {
	var h held
	require.Equal(t, 5, h.add(1, 5))
	require.Equal(t, 12, h.add(2, 7))
	require.Equal(t, 15, h.add(3, 3))
	h.acknowledge(2)
	require.Equal(t, 7, h.add(4, 4))
	h.acknowledge(2) // again
	h.acknowledge(9)
	require.Equal(t, 1, h.add(10, 1))
}
