package waitingroom

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRoom_AheadAndETA(t *testing.T) {
	r := Room{Admitted: 100, PermitsPerSecond: 50}
	for _, c := range []struct {
		position, ahead int64
		eta             time.Duration
	}{{1, 0, 0}, {100, 0, 0}, {101, 0, 20 * time.Millisecond}, {151, 50, 1020 * time.Millisecond}} {
		require.Equal(t, c.ahead, r.Ahead(c.position))
		require.Equal(t, c.eta, r.ETA(c.position))
	}
}
