package main

import (
	"fmt"
	"time"
)

// millionTime is the length of the sale of the million profile.
const millionTime = time.Hour

// applyProfile sets each flag that the user left out to its value in the profile. The others keep
// their values, so that a user can run the profile smaller.
func (o *options) applyProfile(provided map[string]bool) error {
	if o.profile != "million" {
		return fmt.Errorf("-profile %q: the only profile is million", o.profile)
	}
	if !(o.compress >= 1 && o.compress <= 1000) { // false for NaN
		return fmt.Errorf("-compress must be 1 to 1000")
	}
	setDefault(provided["buyers"], &o.Buyers, 1_000_000)
	setDefault(provided["spike"], &o.Spike, min(20_000, o.Buyers))
	setDefault(provided["stock"], &o.stock, 10_000)
	setDefault(provided["permits"], &o.permits, 1000*o.compress)
	setDefault(provided["impatient"], &o.Impatient, .1)
	setDefault(provided["hostile"], &o.Hostile, .01)
	setDefault(provided["timeout"], &o.timeout, o.compressed(millionTime)+10*time.Minute)
	rate := float64(o.Buyers-o.Spike) / o.compressed(millionTime).Seconds()
	setDefault(provided["rate"] || provided["users"], &o.Rate, rate)
	return nil
}

// setDefault sets a value unless the user set its flag.
func setDefault[T any](provided bool, to *T, value T) {
	if !provided {
		*to = value
	}
}

// compressed is the real duration of a time of the profile.
func (o options) compressed(d time.Duration) time.Duration {
	return time.Duration(float64(d) / o.compress)
}

// compressionNote explains the effect of the compression on the figures. Without it a reader would
// take the latencies of a compressed hour for those of an hour.
func (o options) compressionNote() string {
	return fmt.Sprintf("time is compressed %g times: arrivals, permits per second, and the limiter's "+
		"burst and longest wait, so that as many buyers compete for each permit. Latencies, Retry-After "+
		"and the 60 s of a random path are not: waits weigh %g times as much.", o.compress, o.compress)
}
