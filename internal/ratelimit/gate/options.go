package gate

import (
	"context"
	"time"

	"flashsale.dev/seckill/internal/ratelimit"
)

// Store decides asks by key: Redis for all nodes, Memory for this one.
type Store interface {
	// TakeEach decides groups of asks, in order; each group together or not at all.
	TakeEach(ctx context.Context, groups ...[]ratelimit.Ask) ([]ratelimit.Decision, error)
	// Refund gives back what was booked at that time.
	Refund(ctx context.Context, booked time.Time, asks ...ratelimit.Ask) error
}

// Options are a Gate's settings; the zero value of each is its default.
type Options struct {
	// Deadline of one decision; at it the rule's onError decides. 50 ms.
	Deadline time.Duration
	// Waiters is how many callers may wait at once for permits. 10,000.
	Waiters int64
	// Nodes is how many nodes share Redis, for onError: local. 1.
	Nodes func() int
	// Cluster: keys of one call must share a hash tag.
	Cluster bool
	Metrics Metrics
	// Now is this node's clock, for tests. It must not step: time.Now's
	// monotonic reading does.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Deadline <= 0 {
		o.Deadline = 50 * time.Millisecond
	}
	if o.Waiters <= 0 {
		o.Waiters = 10_000
	}
	if o.Nodes == nil {
		o.Nodes = func() int { return 1 }
	}
	if o.Metrics == nil {
		o.Metrics = noMeter{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
