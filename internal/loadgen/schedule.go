package loadgen

import (
	"math"
	"time"
)

// arrival is when the n-th buyer of an open loop (from 0) is due, counted from the loop's beginning: one every 1/rate,
// after a ramp in which the rate grows evenly from nothing. In the ramp rate·t²/(2·ramp) buyers have come by t.
func arrival(n int, rate float64, ramp time.Duration) time.Duration {
	inRamp := rate * ramp.Seconds() / 2
	k := float64(n)
	if k < inRamp {
		return seconds(math.Sqrt(2 * ramp.Seconds() * k / rate))
	}
	return ramp + seconds((k-inRamp)/rate)
}

// place is when the n-th of so many users of a closed loop begins.
func place(n, users int, ramp time.Duration) time.Duration {
	return time.Duration(float64(ramp) * float64(n) / float64(users))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
