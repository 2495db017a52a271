package batcher

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func double(_ context.Context, _ string, in []int) ([]int, error) {
	out := make([]int, len(in))
	for i, n := range in {
		out[i] = 2 * n
	}
	return out, nil
}

func TestEveryCallGetsItsOwnAnswer(t *testing.T) {
	l := New(4, double)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			got, err := l.Do(t.Context(), "k", i)
			require.NoError(t, err)
			require.Equal(t, 2*i, got)
		})
	}
	wg.Wait()
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.stops) == 0
	}, timeout, tick, "a key that nobody uses is forgotten")
}

// held is a trip that waits at its start until it is let go, and tells what it carried.
type held struct {
	started chan []int
	release chan error
}

func newHeld() *held { return &held{started: make(chan []int), release: make(chan error)} }

func (h *held) trip(_ context.Context, _ string, in []int) ([]int, error) {
	h.started <- in
	return in, <-h.release
}

func (l *Line[K, Q, A]) waitFor(t *testing.T, key K, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.stops[key] != nil && len(l.stops[key].waiting) == n
	}, timeout, tick)
}

func TestThoseWhoWaitGoTogetherUpToTheLimit(t *testing.T) {
	h := newHeld()
	l := New(3, h.trip)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _, _ = l.Do(t.Context(), "k", 0) })
	require.Equal(t, []int{0}, <-h.started, "the first leaves at once, alone")
	for i := 1; i <= 4; i++ {
		wg.Go(func() { _, _ = l.Do(t.Context(), "k", i) })
		l.waitFor(t, "k", i)
	}
	h.release <- nil
	require.Equal(t, []int{1, 2, 3}, <-h.started)
	h.release <- nil
	require.Equal(t, []int{4}, <-h.started)
	h.release <- nil
}

func TestWhoLeavesBeforeTheTripIsNotOnIt(t *testing.T) {
	h := newHeld()
	l := New(8, h.trip)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _, _ = l.Do(t.Context(), "k", 0) })
	<-h.started
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	wg.Go(func() { _, err := l.Do(ctx, "k", 1); gone <- err })
	l.waitFor(t, "k", 1)
	wg.Go(func() { _, _ = l.Do(t.Context(), "k", 2) })
	l.waitFor(t, "k", 2)
	leave()
	require.ErrorIs(t, <-gone, context.Canceled)
	h.release <- nil
	require.Equal(t, []int{2}, <-h.started)
	h.release <- nil
}

func TestAnErrorIsEverybodys(t *testing.T) {
	h := newHeld()
	l := New(8, h.trip)
	broken := errors.New("broken")
	err := make(chan error)
	go func() { _, e := l.Do(t.Context(), "k", 1); err <- e }()
	<-h.started
	h.release <- broken
	require.ErrorIs(t, <-err, broken)
}

func TestKeysDoNotWaitForEachOther(t *testing.T) {
	h := newHeld()
	l := New(8, h.trip)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _, _ = l.Do(t.Context(), "a", 1) })
	wg.Go(func() { _, _ = l.Do(t.Context(), "b", 2) })
	require.ElementsMatch(t, []int{1, 2}, append(<-h.started, <-h.started...))
	h.release <- nil
	h.release <- nil
}
