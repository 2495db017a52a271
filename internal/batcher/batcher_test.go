package batcher

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// queued reports how many calls of a key wait. It returns -1 if the key has no batch in flight.
func (b *Batcher[K, Q, A]) queued(key K) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if q := b.queues[key]; q != nil {
		return len(q.waiting)
	}
	return -1
}

func (b *Batcher[K, Q, A]) waitFor(t *testing.T, key K, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return b.queued(key) == n }, time.Minute, time.Millisecond)
}

// TestBatcher_EachCallGetsItsOwnAnswer checks that 200 concurrent calls each get the answer to
// their own request, and that the batcher then forgets the key.
func TestBatcher_EachCallGetsItsOwnAnswer(t *testing.T) {
	b := New(4, func(_ context.Context, _ string, in []int) ([]int, error) {
		out := make([]int, len(in))
		for i, n := range in {
			out[i] = 2 * n
		}
		return out, nil
	})
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			got, err := b.Do(t.Context(), "k", i)
			require.NoError(t, err)
			require.Equal(t, 2*i, got)
		})
	}
	wg.Wait()
	b.waitFor(t, "k", -1)
}

// blocking is a Func that reports each batch and returns when the test releases it.
type blocking struct {
	started chan []int
	release chan error
}

func newBlocking() *blocking {
	return &blocking{started: make(chan []int), release: make(chan error)}
}

func (f *blocking) execute(_ context.Context, _ string, in []int) ([]int, error) {
	f.started <- in
	return in, <-f.release
}

func TestBatcher_WaitingCallsShareBatchesUpToLimit(t *testing.T) {
	f := newBlocking()
	b := New(3, f.execute)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _, _ = b.Do(t.Context(), "k", 0) })
	require.Equal(t, []int{0}, <-f.started, "the first call starts at once, alone")
	for i := 1; i <= 4; i++ {
		wg.Go(func() { _, _ = b.Do(t.Context(), "k", i) })
		b.waitFor(t, "k", i)
	}
	f.release <- nil
	require.Equal(t, []int{1, 2, 3}, <-f.started)
	f.release <- nil
	require.Equal(t, []int{4}, <-f.started)
	f.release <- nil
}

// TestBatcher_CancelledCallIsNotExecuted checks that the next batch leaves out a call whose context
// ended while it waited.
func TestBatcher_CancelledCallIsNotExecuted(t *testing.T) {
	f := newBlocking()
	b := New(8, f.execute)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _, _ = b.Do(t.Context(), "k", 0) })
	<-f.started
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	wg.Go(func() { _, err := b.Do(ctx, "k", 1); result <- err })
	b.waitFor(t, "k", 1)
	wg.Go(func() { _, _ = b.Do(t.Context(), "k", 2) })
	b.waitFor(t, "k", 2)
	cancel()
	require.ErrorIs(t, <-result, context.Canceled)
	f.release <- nil
	require.Equal(t, []int{2}, <-f.started)
	f.release <- nil
}

func TestBatcher_ErrorReachesEachCall(t *testing.T) {
	f := newBlocking()
	b := New(8, f.execute)
	broken := errors.New("broken")
	err := make(chan error)
	go func() { _, e := b.Do(t.Context(), "k", 1); err <- e }()
	<-f.started
	f.release <- broken
	require.ErrorIs(t, <-err, broken)
}

// TestBatcher_KeysAreIndependent checks that a batch of one key does not delay a batch of another
// key.
func TestBatcher_KeysAreIndependent(t *testing.T) {
	f := newBlocking()
	b := New(8, f.execute)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _, _ = b.Do(t.Context(), "a", 1) })
	wg.Go(func() { _, _ = b.Do(t.Context(), "b", 2) })
	require.ElementsMatch(t, []int{1, 2}, append(<-f.started, <-f.started...))
	f.release <- nil
	f.release <- nil
}
