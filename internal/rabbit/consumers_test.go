package rabbit_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/rabbit"
)

// floor is where a number of consumers write what comes through the shards, as MySQL would be.
type floor struct {
	t       *testing.T
	writing []sync.Mutex // one per shard: held from a batch's first delivery until its ack

	mu     sync.Mutex
	by     []string // who wrote to each shard last
	seen   map[string]bool
	clumsy atomic.Int64 // writes while another wrote
}

// write has one message written; two at once in a shard are noted.
func (f *floor) write(who string, shard int, ack func() error, body string) {
	if !f.writing[shard].TryLock() {
		f.clumsy.Add(1)
		return
	}
	defer f.writing[shard].Unlock()
	time.Sleep(200 * time.Microsecond) // what MySQL takes
	if ack() != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.by[shard] = who
	f.seen[body] = true
}

// shares counts the shards that each consumer was the last to write to.
func (f *floor) shares() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := map[string]int{}
	for _, who := range f.by {
		n[who]++
	}
	return n
}

// worker is one consuming process.
type worker struct {
	name   string
	source *rabbit.Source
	floor  *floor
	stop   context.CancelFunc
	shards sync.WaitGroup
}

func (f *floor) hire(name string, opt rabbit.Options) *worker {
	ctx, stop := context.WithCancel(f.t.Context())
	w := &worker{name: name, source: openSource(f.t, opt), floor: f, stop: stop}
	for shard := range opt.Shards {
		w.shards.Go(func() {
			for ctx.Err() == nil {
				w.consume(ctx, shard)
			}
		})
	}
	f.t.Cleanup(w.leave)
	return w
}

func (w *worker) consume(ctx context.Context, shard int) {
	stream, err := w.source.Open(ctx, shard)
	if err != nil {
		return
	}
	defer stream.Close() //nolint:errcheck // its connection may be gone
	for {
		select {
		case d, ok := <-stream.Deliveries():
			if !ok {
				return
			}
			w.floor.write(w.name, shard, func() error { return stream.Ack(d.Tag) }, string(d.Body))
		case <-ctx.Done():
			return
		}
	}
}

func (w *worker) leave() {
	w.stop()
	w.shards.Wait()
}

// goodsOf finds a goods for each shard.
func goodsOf(shards int) []int64 {
	all := make([]int64, shards)
	for id := int64(1); slices.Contains(all, 0); id++ {
		if s := order.Shard(id, shards); all[s] == 0 {
			all[s] = id
		}
	}
	return all
}

// supply publishes to all shards until it is stopped, and returns what was confirmed.
func supply(t *testing.T, p order.Publisher, shards int) (stop func() []string) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	sent := make([][]string, shards)
	for shard, goods := range goodsOf(shards) {
		running.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				body := fmt.Sprintf("%d/%d", shard, i)
				if p.Publish(ctx, goods, []byte(body)) == nil {
					sent[shard] = append(sent[shard], body)
				}
				time.Sleep(time.Millisecond) // no more than the writers keep up with
			}
		})
	}
	t.Cleanup(cancel)
	return func() []string {
		cancel()
		running.Wait()
		return slices.Concat(sent...)
	}
}

// Consumers join and leave, and the shards follow: nobody keeps more than a fair share, no shard is left alone, nothing is lost,
// and no two write one shard at once.
func TestConsumersShareTheShards(t *testing.T) {
	opt := rabbit.Options{URLs: []string{env.RabbitMQ(t).NewVHost(t)}, Shards: 4}
	f := &floor{t: t, writing: make([]sync.Mutex, opt.Shards), by: make([]string, opt.Shards), seen: map[string]bool{}}
	stop := supply(t, runPublisher(t, opt), opt.Shards)
	shared := func(want map[string]int) {
		t.Helper()
		require.Eventually(t, func() bool { return fmt.Sprint(f.shares()) == fmt.Sprint(want) }, patience, 10*time.Millisecond,
			"the shards do not come to %v, now %v", want, f.shares())
	}
	first := f.hire("first", opt)
	shared(map[string]int{"first": 4})
	second := f.hire("second", opt)
	shared(map[string]int{"first": 2, "second": 2})
	first.leave()
	shared(map[string]int{"second": 4})
	for i := range 3 {
		f.hire(fmt.Sprint("third ", i), opt)
	}
	shared(map[string]int{"second": 1, "third 0": 1, "third 1": 1, "third 2": 1})
	second.leave()
	require.Eventually(t, func() bool { return f.shares()["second"] == 0 }, patience, 10*time.Millisecond)
	sent := stop()
	require.NotEmpty(t, sent)
	require.Eventually(t, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return !slices.ContainsFunc(sent, func(body string) bool { return !f.seen[body] })
	}, patience, 10*time.Millisecond, "confirmed and never written")
	require.Zero(t, f.clumsy.Load(), "two wrote one shard at once")
}
