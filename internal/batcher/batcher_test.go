package batcher

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestBatcher_EachCallGetsItsOwnAnswer checks that 200 concurrent calls each get the answer to
// their own request, and that the batcher then forgets the key.
func TestBatcher_EachCallGetsItsOwnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(4, func(_ context.Context, _ string, in []int) ([]int, error) {
			out := make([]int, len(in))
			for i, n := range in {
				out[i] = 2 * n
			}
			return out, nil
		})
		for i := range 200 {
			go func() {
				got, err := b.Do(t.Context(), "k", i)
				assert.NoError(t, err)
				assert.Equal(t, 2*i, got)
			}()
		}
		synctest.Wait()
		require.Empty(t, b.queues)
	})
}

// blocking is a batcher whose batches the test receives and releases.
type blocking struct {
	*Batcher[string, int, int]
	started chan []int
	release chan error
}

// runBlocking runs a test with a blocking batcher.
func runBlocking(t *testing.T, limit int, test func(t *testing.T, b blocking)) {
	synctest.Test(t, func(t *testing.T) {
		b := blocking{started: make(chan []int), release: make(chan error)}
		b.Batcher = New(limit, func(_ context.Context, _ string, in []int) ([]int, error) {
			b.started <- in
			return in, <-b.release
		})
		test(t, b)
	})
}

// begin calls Do, returns when the call runs or waits, and sends its error later.
func (b blocking) begin(ctx context.Context, key string, n int) <-chan error {
	result := make(chan error, 1)
	go func() {
		_, err := b.Do(ctx, key, n)
		result <- err
	}()
	synctest.Wait()
	return result
}

func TestBatcher_WaitingCallsShareBatchesUpToLimit(t *testing.T) {
	runBlocking(t, 3, func(t *testing.T, b blocking) {
		for i := range 5 {
			b.begin(t.Context(), "k", i)
		}
		for _, batch := range [][]int{{0}, {1, 2, 3}, {4}} {
			require.Equal(t, batch, <-b.started, "the first call starts at once, alone")
			b.release <- nil
		}
	})
}

// TestBatcher_CancelledCallIsNotExecuted checks that no batch has a call whose context ended while
// it waited, and that a batch of such calls alone is not executed.
func TestBatcher_CancelledCallIsNotExecuted(t *testing.T) {
	for _, limit := range []int{1, 8} {
		runBlocking(t, limit, func(t *testing.T, b blocking) {
			ctx, cancel := context.WithCancel(t.Context())
			b.begin(t.Context(), "k", 0)
			cancelled := b.begin(ctx, "k", 1)
			b.begin(t.Context(), "k", 2)
			cancel()
			require.ErrorIs(t, <-cancelled, context.Canceled)
			for _, batch := range [][]int{{0}, {2}} {
				require.Equal(t, batch, <-b.started)
				b.release <- nil
			}
		})
	}
}

func TestBatcher_ErrorReachesEachCall(t *testing.T) {
	runBlocking(t, 8, func(t *testing.T, b blocking) {
		result := b.begin(t.Context(), "k", 1)
		<-b.started
		broken := errors.New("broken")
		b.release <- broken
		require.ErrorIs(t, <-result, broken)
	})
}

// TestBatcher_KeysAreIndependent checks that a batch of one key does not delay a batch of another
// key.
func TestBatcher_KeysAreIndependent(t *testing.T) {
	runBlocking(t, 8, func(t *testing.T, b blocking) {
		b.begin(t.Context(), "a", 1)
		b.begin(t.Context(), "b", 2)
		require.ElementsMatch(t, []int{1, 2}, append(<-b.started, <-b.started...))
		b.release <- nil
		b.release <- nil
	})
}
