package rabbit_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
)

// load publishes from several goroutines and records the confirmed messages.
type load struct {
	t       *testing.T
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	done   map[string]bool
	failed error // of the latest publish that failed
}

func startLoad(t *testing.T, p order.Publisher) *load {
	ctx, cancel := context.WithCancel(t.Context())
	r := &load{t: t, cancel: cancel, done: make(map[string]bool)}
	for worker := range 8 {
		r.running.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				r.publish(ctx, p, fmt.Sprintf("%d-%d", worker, i))
			}
		})
	}
	t.Cleanup(func() { r.stop() })
	return r
}

func (r *load) publish(ctx context.Context, p order.Publisher, body string) {
	if err := p.Publish(ctx, goods, []byte(body)); err != nil {
		r.note(err)
		select { // without it eight goroutines spin while the broker is down
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done[body] = true
}

func (r *load) note(failed error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = failed
}

func (r *load) confirmed() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[string]bool, len(r.done))
	for body := range r.done {
		all[body] = true
	}
	return all
}

func (r *load) await(n int) {
	r.t.Helper()
	deadline := time.Now().Add(timeout)
	for len(r.confirmed()) < n {
		if time.Now().After(deadline) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.t.Fatalf("%d of %d confirmed; the latest publish that failed: %v", len(r.done), n,
				r.failed)
		}
		time.Sleep(time.Millisecond)
	}
}

func (r *load) stop() map[string]bool {
	r.cancel()
	r.running.Wait()
	return r.confirmed()
}

// queueReports collects the shards that OnNewQueue reported.
type queueReports struct{ shards chan int }

func newQueueReports() queueReports { return queueReports{shards: make(chan int, 64)} }

func (f queueReports) add(shard int) { f.shards <- shard }

func (f queueReports) await(t *testing.T, want ...int) {
	t.Helper()
	for _, shard := range want {
		select {
		case got := <-f.shards:
			require.Equal(t, shard, got)
		case <-time.After(timeout):
			t.Fatalf("shard %d was not reported as new", shard)
		}
	}
}
