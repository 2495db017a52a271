// Package group lets calls that meet travel together.
//
// Whoever is waiting when the last trip returns goes on the next one; nobody waits for company, and where there is
// none a call leaves at once, alone. There is one trip per key under way at a time, so a key's requests keep the order in
// which they came. It is what turns thousands of calls to Redis into a few (known as group commit in databases).
//
// It imports the standard library alone.
package group

import (
	"context"
	"sync"
)

// Trip does the work for everybody on it: one answer for each request, in order, or one error for all. Its context
// carries no cancellation, for no traveller may stop the others: the trip sets its own deadline.
type Trip[K comparable, Q, A any] func(ctx context.Context, key K, requests []Q) ([]A, error)

// Line brings together the calls of each key. Make one with New; it needs no closing, for it keeps a goroutine
// only while somebody travels.
type Line[K comparable, Q, A any] struct {
	trip Trip[K, Q, A]
	max  int

	mu    sync.Mutex
	stops map[K]*stop[Q, A]
}

// stop is where the next travellers of a key wait; it exists only while a trip of the key is under way.
type stop[Q, A any] struct{ waiting []*traveller[Q, A] }

type traveller[Q, A any] struct {
	ctx     context.Context
	request Q
	answer  A
	err     error
	done    chan struct{}
}

// New makes a line whose trips take at most so many requests (> 0).
func New[K comparable, Q, A any](limit int, trip Trip[K, Q, A]) *Line[K, Q, A] {
	return &Line[K, Q, A]{trip: trip, max: limit, stops: make(map[K]*stop[Q, A])}
}

// Do takes the next trip and returns its answer. Where ctx ends first its error is returned: if the trip had not left
// yet the request is not on it, otherwise it was made and its answer is lost to the caller.
func (l *Line[K, Q, A]) Do(ctx context.Context, key K, request Q) (A, error) {
	t := &traveller[Q, A]{ctx: ctx, request: request, done: make(chan struct{})}
	l.join(key, t)
	select {
	case <-t.done:
		return t.answer, t.err
	case <-ctx.Done():
		var none A
		return none, context.Cause(ctx)
	}
}

func (l *Line[K, Q, A]) join(key K, t *traveller[Q, A]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, underWay := l.stops[key]; underWay {
		s.waiting = append(s.waiting, t)
		return
	}
	s := &stop[Q, A]{waiting: []*traveller[Q, A]{t}}
	l.stops[key] = s
	go l.drive(context.WithoutCancel(t.ctx), key, s)
}

// drive makes trips of a key until nobody waits.
func (l *Line[K, Q, A]) drive(ctx context.Context, key K, s *stop[Q, A]) {
	for {
		aboard := l.board(key, s)
		if aboard == nil {
			return
		}
		l.travel(ctx, key, aboard)
	}
}

// board takes those who wait, up to the limit, and leaves out whoever has gone home.
func (l *Line[K, Q, A]) board(key K, s *stop[Q, A]) []*traveller[Q, A] {
	l.mu.Lock()
	defer l.mu.Unlock()
	var aboard []*traveller[Q, A]
	for len(s.waiting) > 0 && len(aboard) < l.max {
		if t := s.waiting[0]; t.ctx.Err() == nil {
			aboard = append(aboard, t)
		}
		s.waiting = s.waiting[1:]
	}
	if aboard == nil {
		delete(l.stops, key)
	}
	return aboard
}

func (l *Line[K, Q, A]) travel(ctx context.Context, key K, aboard []*traveller[Q, A]) {
	requests := make([]Q, len(aboard))
	for i, t := range aboard {
		requests[i] = t.request
	}
	answers, err := l.trip(ctx, key, requests)
	for i, t := range aboard {
		if err != nil {
			t.err = err
		} else {
			t.answer = answers[i]
		}
		close(t.done)
	}
}
