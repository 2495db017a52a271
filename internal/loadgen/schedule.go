package loadgen

import (
	"math"
	"time"
)

// arrival is the planned start of buyer n (from 0) of an open loop, counted from the loop's start:
// one every 1/rate after a ramp with linear growth. During the ramp rate·t²/(2·ramp) buyers have
// arrived by t.
func arrival(n int, rate float64, ramp time.Duration) time.Duration {
	inRamp := rate * ramp.Seconds() / 2
	k := float64(n)
	if k < inRamp {
		return seconds(math.Sqrt(2 * ramp.Seconds() * k / rate))
	}
	return ramp + seconds((k-inRamp)/rate)
}

// userStart is the start of user n of a closed loop, spread evenly over the ramp.
func userStart(n, users int, ramp time.Duration) time.Duration {
	return time.Duration(float64(ramp) * float64(n) / float64(users))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
