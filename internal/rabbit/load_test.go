package rabbit_test

import (
	"context"
	"fmt"
	"maps"
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
	failed error // the error of the latest publish that failed
}

// startLoad publishes numbered messages of each goods until stop or cleanup.
func startLoad(t *testing.T, p order.Publisher, goods ...int64) *load {
	ctx, cancel := context.WithCancel(t.Context())
	r := &load{t: t, cancel: cancel, done: make(map[string]bool)}
	for worker, id := range goods {
		r.running.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				body := fmt.Sprintf("%d/%09d", worker, i)
				r.note(body, p.Publish(ctx, id, []byte(body)))
				time.Sleep(time.Millisecond) // the consumers must keep up
			}
		})
	}
	t.Cleanup(func() { r.stop() })
	return r
}

func (r *load) note(body string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failed = err
		return
	}
	r.done[body] = true
}

func (r *load) confirmed() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.done)
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
type queueReports chan int

func (q queueReports) add(shard int) { q <- shard }

func (q queueReports) await(t *testing.T, want ...int) {
	t.Helper()
	for _, shard := range want {
		select {
		case got := <-q:
			require.Equal(t, shard, got)
		case <-time.After(timeout):
			t.Fatalf("shard %d was not reported as new", shard)
		}
	}
}
