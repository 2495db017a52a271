package gate

import (
	"context"

	"flashsale.dev/seckill/internal/group"
	"flashsale.dev/seckill/internal/ratelimit"
)

const maxBatch = 256

// item is one ask on its way to Redis.
type item struct {
	rule    string
	request ratelimit.Request
}

// batcher takes asks to Redis, many in a trip: whoever waits when the last trip
// returns goes on the next. In a cluster there is a line for each hash tag,
// else one for all.
type batcher struct {
	store    Store
	opts     Options
	breakers breakers
	batches  *group.Line[string, item, ratelimit.Decision]
}

func newBatcher(store Store, opts Options) *batcher {
	c := &batcher{store: store, opts: opts, breakers: newBreakers(opts.Cluster)}
	c.batches = group.New(maxBatch, c.send)
	return c
}

// ask waits for the trip's end, also when its callers have given up: what it
// books must be known to be used or given back. One deadline is for the trip
// that is under way and one for its own.
func (c *batcher) take(r item) (ratelimit.Decision, error) {
	if !c.breakers.of(r.request.Key).allow(c.opts.Now()) {
		return ratelimit.Decision{}, errOpen
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*c.opts.Deadline)
	defer cancel()
	tag := ""
	if c.opts.Cluster {
		tag = hashTag(r.request.Key)
	}
	return c.batches.Do(ctx, tag, r)
}

// trip is on behalf of many: no caller's context ends it.
func (c *batcher) send(ctx context.Context, _ string, requests []item) ([]ratelimit.Decision, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Deadline)
	defer cancel()
	groups := make([][]ratelimit.Request, len(requests))
	for i, r := range requests {
		groups[i] = []ratelimit.Request{r.request}
	}
	decisions, err := c.store.TakeEach(ctx, groups...)
	c.opts.count(requests[0].rule, EventRedisCall)
	c.breakers.of(requests[0].request.Key).record(c.opts.Now(), err == nil)
	return decisions, err
}
