// Package batcher merges concurrent calls into batches, as group commit does in databases.
//
// A Batcher keeps at most one batch per key in flight. Calls that arrive meanwhile form the next
// batch, in their order of arrival. A call that finds no batch in flight starts one at once, so
// batching adds no delay. It turns thousands of calls to Redis into a few.
//
// It imports the standard library alone.
package batcher

import (
	"context"
	"sync"
)

// Func executes one batch. It returns one answer for each request, in order, or one error for all.
// Its context has one caller's values but no cancellation, because no caller may stop the
// others. The function sets its own deadline.
type Func[K comparable, Q, A any] func(ctx context.Context, key K, requests []Q) ([]A, error)

// Batcher merges the concurrent calls of each key. Make one with New; it needs no closing, because
// it keeps a goroutine only while calls are in flight. It is safe for concurrent use.
type Batcher[K comparable, Q, A any] struct {
	execute Func[K, Q, A]
	max     int

	mu     sync.Mutex
	queues map[K][]*call[Q, A] // the next batch of each key that has a batch in flight
}

// call is one request with its answer, which is valid after done is closed.
type call[Q, A any] struct {
	ctx     context.Context // belongs to one call in flight and ends with it
	request Q
	answer  A
	err     error
	done    chan struct{}
}

// New returns a Batcher whose batches hold at most limit requests (> 0).
func New[K comparable, Q, A any](limit int, execute Func[K, Q, A]) *Batcher[K, Q, A] {
	return &Batcher[K, Q, A]{execute: execute, max: limit, queues: make(map[K][]*call[Q, A])}
}

// Do adds a request to the key's next batch and returns its answer. If ctx ends first, Do returns
// its cause. The batcher then drops a waiting request, and executes one in flight without a reader.
func (b *Batcher[K, Q, A]) Do(ctx context.Context, key K, request Q) (A, error) {
	c := &call[Q, A]{ctx: ctx, request: request, done: make(chan struct{})}
	b.add(key, c)
	select {
	case <-c.done:
		return c.answer, c.err
	case <-ctx.Done():
		var none A
		return none, context.Cause(ctx)
	}
}

// add queues a call, or starts a goroutine for a key without a batch in flight.
func (b *Batcher[K, Q, A]) add(key K, c *call[Q, A]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting, inFlight := b.queues[key]
	b.queues[key] = append(waiting, c)
	if !inFlight {
		go b.run(context.WithoutCancel(c.ctx), key)
	}
}

// run executes batches of a key until no call waits.
func (b *Batcher[K, Q, A]) run(ctx context.Context, key K) {
	for batch := b.next(key); batch != nil; batch = b.next(key) {
		b.finish(ctx, key, batch)
	}
}

// next removes up to max waiting calls from the queue and drops those whose context has ended.
func (b *Batcher[K, Q, A]) next(key K) (batch []*call[Q, A]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting := b.queues[key]
	for len(waiting) > 0 && len(batch) < b.max {
		if c := waiting[0]; c.ctx.Err() == nil {
			batch = append(batch, c)
		}
		waiting = waiting[1:]
	}
	b.queues[key] = waiting
	if batch == nil {
		delete(b.queues, key)
	}
	return batch
}

// finish executes a batch and wakes its callers.
func (b *Batcher[K, Q, A]) finish(ctx context.Context, key K, batch []*call[Q, A]) {
	requests := make([]Q, len(batch))
	for i, c := range batch {
		requests[i] = c.request
	}
	answers, err := b.execute(ctx, key, requests)
	for i, c := range batch {
		if err != nil {
			c.err = err
		} else {
			c.answer = answers[i]
		}
		close(c.done)
	}
}
