// Package batcher merges concurrent calls into batches, as group commit does in databases.
//
// A Batcher keeps at most one batch per key in flight. Calls that arrive meanwhile form the next
// batch, in their order of arrival. A call that finds no batch in flight starts one at once, so
// batching adds no delay. A batch begins after the goroutines that are ready to run, because these
// may call too. So thousands of calls to Redis become a few.
//
// It imports the standard library alone.
package batcher

import (
	"context"
	"runtime"
	"sync"
)

// Func executes one batch. It returns one answer for each request, in order, or one error for all.
// Its context has one caller's values but no cancellation, because no caller may stop the others.
// The function sets its own deadline.
type Func[K comparable, Q, A any] func(ctx context.Context, key K, requests []Q) ([]A, error)

// Batcher merges the concurrent calls of each key. Make one with New; it needs no closing, because
// it keeps a goroutine only while calls are in flight. It is safe for concurrent use.
type Batcher[K comparable, Q, A any] struct {
	execute Func[K, Q, A]
	max     int

	mu     sync.Mutex
	queues map[K][]*batch[Q, A] // the waiting batches of each key that has a goroutine
}

// batch holds calls that are executed together. One channel wakes all their callers. The outcome,
// which is the last three fields, is valid after done is closed.
type batch[Q, A any] struct {
	callers  []context.Context
	requests []Q
	done     chan struct{}

	places  []int // of each call's answer; -1 if the caller had left before
	answers []A
	err     error
}

// New returns a Batcher whose batches hold at most limit requests (> 0).
func New[K comparable, Q, A any](limit int, execute Func[K, Q, A]) *Batcher[K, Q, A] {
	return &Batcher[K, Q, A]{execute: execute, max: limit, queues: make(map[K][]*batch[Q, A])}
}

// Do adds a request to the key's next batch and returns its answer. If ctx ends first, Do returns
// its cause. The batcher then drops a waiting request, and executes one in flight without a reader.
func (b *Batcher[K, Q, A]) Do(ctx context.Context, key K, request Q) (answer A, err error) {
	joined, call := b.add(ctx, key, request)
	select {
	case <-joined.done:
		if place := joined.places[call]; place >= 0 {
			if joined.err == nil {
				answer = joined.answers[place]
			}
			return answer, joined.err
		}
	case <-ctx.Done():
	}
	return answer, context.Cause(ctx)
}

// add appends a call to the last waiting batch, or starts a goroutine for a key without a batch in
// flight. It returns the call's batch and its index there.
func (b *Batcher[K, Q, A]) add(ctx context.Context, key K, request Q) (*batch[Q, A], int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting, inFlight := b.queues[key]
	n := len(waiting)
	if n == 0 || len(waiting[n-1].requests) == b.max {
		waiting = append(waiting, &batch[Q, A]{done: make(chan struct{})})
		b.queues[key] = waiting
		n++
	}
	last := waiting[n-1]
	last.callers, last.requests = append(last.callers, ctx), append(last.requests, request)
	if !inFlight {
		go b.run(context.WithoutCancel(ctx), key)
	}
	return last, len(last.requests) - 1
}

// run executes batches of a key until no call waits.
func (b *Batcher[K, Q, A]) run(ctx context.Context, key K) {
	for next := b.next(key); next != nil; next = b.next(key) {
		if requests := next.wanted(); len(requests) > 0 {
			next.answers, next.err = b.execute(ctx, key, requests)
		}
		close(next.done)
	}
}

// next removes the first waiting batch from the queue; nil if there is none. Callers that are ready
// to run join it first.
func (b *Batcher[K, Q, A]) next(key K) *batch[Q, A] {
	runtime.Gosched()
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting := b.queues[key]
	if len(waiting) == 0 {
		delete(b.queues, key)
		return nil
	}
	b.queues[key] = waiting[1:]
	return waiting[0]
}

// wanted returns the requests whose callers still wait, and sets the places of their answers.
func (b *batch[Q, A]) wanted() []Q {
	wanted := b.requests[:0]
	b.places = make([]int, len(b.callers))
	for i, ctx := range b.callers {
		b.places[i] = -1
		if ctx.Err() == nil {
			b.places[i] = len(wanted)
			wanted = append(wanted, b.requests[i])
		}
	}
	return wanted
}
