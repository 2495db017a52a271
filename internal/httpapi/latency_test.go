package httpapi

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLatencyWindow_P99CoversTheLastSeconds(t *testing.T) {
	l := newLatencyWindow()
	now := time.Unix(1_800_000_000, 0)
	require.Zero(t, l.p99(now))
	for range 99 {
		l.record(now, time.Millisecond)
	}
	l.record(now, time.Second)
	require.InEpsilon(t, 1000, l.p99(now).Microseconds(), 0.01)
	l.record(now.Add(5*time.Second), time.Second)
	require.InEpsilon(t, 1e6, l.p99(now.Add(5*time.Second)).Microseconds(), 0.01,
		"2 of 101 requests took a second")
	require.InEpsilon(t, 1e6, l.p99(now.Add(12*time.Second)).Microseconds(), 0.01,
		"the window holds one request")
	require.Zero(t, l.p99(now.Add(15*time.Second)))
}
