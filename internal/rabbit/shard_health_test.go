package rabbit

import (
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
