package httpapi

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestEveryTimeHasABucketThatIsNotMuchWider(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64Range(0, 1<<31).Draw(t, "micros")
		b := bucketOf(micros)
		require.LessOrEqual(t, micros, upTo(b))
		require.LessOrEqual(t, upTo(b), micros+micros/4+1)
		if b > 0 {
			require.Greater(t, micros, upTo(b-1))
		}
	})
}

func TestThePulseIsOfTheLastSeconds(t *testing.T) {
	var p pulse
	now := time.Unix(1_800_000_000, 0)
	require.Zero(t, p.p99(now))
	for range 99 {
		p.observe(now, time.Millisecond)
	}
	p.observe(now, time.Second)
	require.InDelta(t, 1000, p.p99(now).Microseconds(), 250)
	p.observe(now.Add(5*time.Second), time.Second)
	require.InDelta(t, 1e6, p.p99(now.Add(5*time.Second)).Microseconds(), 250e3, "two of 101")
	require.InDelta(t, 1e6, p.p99(now.Add(12*time.Second)).Microseconds(), 250e3, "only the last one is left")
	require.Zero(t, p.p99(now.Add(15*time.Second)))
}
