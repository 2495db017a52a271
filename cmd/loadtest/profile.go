package main

import (
	"fmt"
	"time"
)

// The million: an hour's sale.
const (
	millionBuyers  = 1_000_000
	millionSpike   = 20_000
	millionStock   = 10_000
	millionPermits = 1000.0
	millionTime    = time.Hour
)

// fit gives every flag that was not given its value of the profile.
func (o *options) fit(given map[string]bool) error {
	if o.profile != "million" {
		return fmt.Errorf("-profile %q: there is only million", o.profile)
	}
	if !(o.compress >= 1 && o.compress <= 1000) {
		return fmt.Errorf("-compress must be 1 to 1000")
	}
	or(given["buyers"], &o.buyers, millionBuyers)
	or(given["spike"], &o.spike, min(millionSpike, o.buyers))
	or(given["stock"], &o.stock, millionStock)
	or(given["permits"], &o.permits, millionPermits*o.compress)
	or(given["impatient"], &o.impatient, .1)
	or(given["hostile"], &o.hostile, .01)
	or(given["timeout"], &o.timeout, o.compressed(millionTime)+10*time.Minute)
	if !given["users"] {
		or(given["rate"], &o.rate, float64(o.buyers-o.spike)/o.compressed(millionTime).Seconds())
	}
	return nil
}

func or[T any](given bool, to *T, value T) {
	if !given {
		*to = value
	}
}

// compressed is how long a time of the profile takes.
func (o options) compressed(d time.Duration) time.Duration {
	return time.Duration(float64(d) / o.compress)
}

// meaning says what the compression does to the figures.
func (o options) meaning() string {
	here := o.compressed(millionTime)
	if o.rate > 0 {
		here = time.Duration(float64(o.buyers-o.spike) / o.rate * float64(time.Second))
	}
	return fmt.Sprintf("time is compressed %g times: what comes in %s here stands for %s. Arrivals, permits per second, the limiter's burst and "+
		"its longest wait are compressed with it, so that as many buyers meet each permit. Not compressed are the machines: each second "+
		"carries the load of %g, times of answers are real ones, and waits in whole seconds (Retry-After) and a path's 60 s weigh %g times as much.",
		o.compress, here.Round(time.Second), time.Duration(float64(here)*o.compress).Round(time.Second), o.compress, o.compress)
}
