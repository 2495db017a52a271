package gate

import (
	"context"
	"time"

	"flashsale.dev/seckill/internal/batcher"
	"flashsale.dev/seckill/internal/ratelimit"
)

const tripAsks = 256

// request is one ask on its way to Redis.
type request struct {
	rule string
	ask  ratelimit.Ask
}

// courier takes asks to Redis, many in a trip: whoever waits when the last trip
// returns goes on the next. In a cluster there is a line for each hash tag,
// else one for all.
type courier struct {
	store    Store
	deadline time.Duration
	cluster  bool
	now      func() time.Time
	meter    Metrics
	breakers breakers
	line     *batcher.Batcher[string, request, ratelimit.Decision]
}

func newCourier(store Store, opts Options) *courier {
	c := &courier{
		store: store, deadline: opts.Deadline, cluster: opts.Cluster, now: opts.Now, meter: opts.Metrics, breakers: newBreakers(opts.Cluster),
	}
	c.line = batcher.New(tripAsks, c.trip)
	return c
}

// ask waits for the trip's end, also when its callers have given up: what it
// books must be known to be used or given back. One deadline is for the trip
// that is under way and one for its own.
func (c *courier) ask(r request) (ratelimit.Decision, error) {
	if !c.breakers.of(r.ask.Key).allow(c.now()) {
		return ratelimit.Decision{}, errOpen
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*c.deadline)
	defer cancel()
	tag := ""
	if c.cluster {
		tag = hashTag(r.ask.Key)
	}
	return c.line.Do(ctx, tag, r)
}

// trip is on behalf of many: no caller's context ends it.
func (c *courier) trip(ctx context.Context, _ string, requests []request) ([]ratelimit.Decision, error) {
	ctx, cancel := context.WithTimeout(ctx, c.deadline)
	defer cancel()
	groups := make([][]ratelimit.Ask, len(requests))
	for i, r := range requests {
		groups[i] = []ratelimit.Ask{r.ask}
	}
	decisions, err := c.store.TakeEach(ctx, groups...)
	c.meter.Count(requests[0].rule, EventRedisCall)
	c.breakers.of(requests[0].ask.Key).record(c.now(), err == nil)
	return decisions, err
}
