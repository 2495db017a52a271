package loadgen

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestArrival_KeepsRate(t *testing.T) {
	for n, want := range map[int]time.Duration{
		0: 0, 1: 10 * time.Millisecond, 100: time.Second, 6000: time.Minute,
	} {
		require.InDelta(t, want, arrival(n, 100, 0), float64(time.Microsecond), n)
	}
}

// TestArrival_LowRateOverflowsNoTime checks a rate whose buyers come later than a duration can
// count.
func TestArrival_LowRateOverflowsNoTime(t *testing.T) {
	for _, ramp := range []time.Duration{0, time.Hour} {
		for _, n := range []int{1, 5000, 10_000_000} {
			require.Greater(t, arrival(n, 1e-9, ramp), 365*24*time.Hour, "buyer %d", n)
		}
	}
}

// TestArrival_RampsUpLinearly checks a ramp of 10 s to 100/s. It admits 500 buyers, half of them in
// its last three seconds.
func TestArrival_RampsUpLinearly(t *testing.T) {
	came := func(by time.Duration) (n int) {
		for arrival(n, 100, 10*time.Second) < by {
			n++
		}
		return n
	}
	require.InDelta(t, 5, came(time.Second), 1)
	require.InDelta(t, 125, came(5*time.Second), 1)
	require.InDelta(t, 500, came(10*time.Second), 1)
	require.InDelta(t, 600, came(11*time.Second), 1)
	for n := range 1000 {
		require.Less(t, arrival(n, 100, 10*time.Second), arrival(n+1, 100, 10*time.Second))
	}
}

func TestUserStart_IsSpreadOverRamp(t *testing.T) {
	require.Equal(t, []time.Duration{0, 5 * time.Second, 9 * time.Second}, []time.Duration{
		userStart(0, 10, 10*time.Second), userStart(5, 10, 10*time.Second),
		userStart(9, 10, 10*time.Second),
	})
}
