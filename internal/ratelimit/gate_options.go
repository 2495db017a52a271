package ratelimit

import "time"

// GateOptions are a Gate's settings; the zero value of each is its default.
type GateOptions struct {
	// Deadline of one decision; at it the rule's onError decides. 50 ms.
	Deadline time.Duration
	// Waiters is how many callers may wait at once for permits. 10,000.
	Waiters int64
	// Nodes is how many nodes share Redis, for onError: local. 1.
	Nodes func() int
	// Cluster: keys of one call must share a hash tag.
	Cluster bool
	Meter   Meter
	// Now is this node's clock, for tests. It must not step: time.Now's
	// monotonic reading does.
	Now func() time.Time
}

func (o GateOptions) withDefaults() GateOptions {
	if o.Deadline <= 0 {
		o.Deadline = 50 * time.Millisecond
	}
	if o.Waiters <= 0 {
		o.Waiters = 10_000
	}
	if o.Nodes == nil {
		o.Nodes = func() int { return 1 }
	}
	if o.Meter == nil {
		o.Meter = noMeter{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
