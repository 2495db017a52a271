package gate

import (
	"context"

	"flashsale.dev/seckill/internal/batcher"
	"flashsale.dev/seckill/internal/ratelimit"
)

// maxBatch bounds the requests of one script call.
const maxBatch = 256

// item is one request of a batch, with the rule whose metrics count it.
type item struct {
	rule    string
	request ratelimit.Request
}

// callBatcher merges requests into script calls: requests that arrive while a call
// is in flight form the next batch. In a cluster each hash tag has its own
// batches, because the keys of one call must share a hash slot.
type callBatcher struct {
	store    Store
	opts     Options
	breakers breakers
	batches  *batcher.Batcher[string, item, ratelimit.Decision]
}

func newBatcher(store Store, opts Options) *callBatcher {
	b := &callBatcher{store: store, opts: opts, breakers: newBreakers(opts.Cluster)}
	b.batches = batcher.New(maxBatch, b.send)
	return b
}

// take decides one request. It returns after the call has ended, even if the callers no longer
// wait: the permits must be used or refunded. The deadline covers the call in flight and the one
// after it. While the circuit breaker is open the error is errOpen with the last failure.
func (b *callBatcher) take(i item) (ratelimit.Decision, error) {
	if err := b.breakers.of(i.request.Key).allow(b.opts.Now()); err != nil {
		return ratelimit.Decision{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*b.opts.Deadline)
	defer cancel()
	tag := ""
	if b.opts.Cluster {
		tag = hashTag(i.request.Key)
	}
	return b.batches.Do(ctx, tag, i)
}

// send makes one script call for a batch. No single caller's context ends it.
func (b *callBatcher) send(
	ctx context.Context, _ string, items []item,
) ([]ratelimit.Decision, error) {
	ctx, cancel := context.WithTimeout(ctx, b.opts.Deadline)
	defer cancel()
	requests := make([]ratelimit.Request, len(items))
	for i, it := range items {
		requests[i] = it.request
	}
	decisions, err := b.store.TakeEach(ctx, requests...)
	b.opts.Count(items[0].rule, EventRedisCall)
	b.breakers.of(items[0].request.Key).record(b.opts.Now(), err)
	return decisions, err
}
