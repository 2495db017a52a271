package gate

import (
	"cmp"
	"context"
	"time"

	"flashsale.dev/seckill/internal/ratelimit"
)

// Store keeps the limiters that all nodes share, by key.
type Store interface {
	// TakeEach decides each request on its own, in order.
	TakeEach(ctx context.Context, requests ...ratelimit.Request) ([]ratelimit.Decision, error)
	// Refund returns the permits that a decision took.
	Refund(ctx context.Context, taken ratelimit.Decision, request ratelimit.Request) error
}

// Options are a Gate's settings. The zero value of each is its default.
type Options struct {
	// Deadline of one decision. After it the rule's onError decides. 50 ms.
	Deadline time.Duration
	// Waiters is how many callers may wait for permits at once. 10,000.
	Waiters int64
	// Nodes is how many nodes share Redis, for onError: local and for leases. 1.
	Nodes func() int
	// MaxKeys is how many limiters this node may have in Redis at once, 100,000. It decides about
	// further keys alone, by its share of their limits. Redis often holds the stock too, and must
	// not be filled by keys that callers invent.
	MaxKeys int
	// Cluster: the keys of one call must share a hash tag.
	Cluster bool
	// Count counts one event of a rule. Every decision calls it, from many goroutines. Nil counts
	// nothing.
	Count func(rule string, event Event)
	// Now is this node's clock, for tests. It must be monotonic, as time.Now is.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	o.Deadline = cmp.Or(o.Deadline, 50*time.Millisecond)
	o.Waiters = cmp.Or(o.Waiters, 10_000)
	o.MaxKeys = cmp.Or(o.MaxKeys, 100_000)
	if o.Nodes == nil {
		o.Nodes = func() int { return 1 }
	}
	if o.Now == nil {
		began := time.Now() // time.Since takes half of the time, because it reads one clock and not two
		o.Now = func() time.Time { return began.Add(time.Since(began)) }
	}
	if o.Count == nil {
		o.Count = func(string, Event) {}
	}
	return o
}
