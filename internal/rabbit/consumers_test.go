package rabbit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/rabbit"
	"flashsale.dev/seckill/internal/testing/servers"
)

// written records the messages that consumers write, in place of MySQL.
type written struct {
	t        *testing.T
	writing  []sync.Mutex // one per shard, held from a delivery until its ack
	overlaps atomic.Int64 // writes that began during another write to the same shard

	mu     sync.Mutex
	by     []string // by shard: the process of the latest write
	bodies [][]string
	seen   map[string]bool
}

func newWritten(t *testing.T, shards int) *written {
	return &written{
		t: t, writing: make([]sync.Mutex, shards), by: make([]string, shards),
		bodies: make([][]string, shards), seen: map[string]bool{},
	}
}

// write records one message unless it is known, and acknowledges it.
func (w *written) write(process string, shard int, ack func() error, body string) {
	if !w.writing[shard].TryLock() {
		w.overlaps.Add(1)
		w.writing[shard].Lock()
	}
	defer w.writing[shard].Unlock()
	time.Sleep(200 * time.Microsecond) // MySQL takes about as long
	w.mu.Lock()
	w.by[shard] = process
	if !w.seen[body] {
		w.seen[body], w.bodies[shard] = true, append(w.bodies[shard], body)
	}
	w.mu.Unlock()
	_ = ack() // an ack may fail on a lost connection; the broker then delivers the message again
}

// writers lists the processes of the shards' latest writes, each once.
func (w *written) writers() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(w.by)))
}

// has reports whether all these messages are written.
func (w *written) has(bodies map[string]bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for body := range bodies {
		if !w.seen[body] {
			return false
		}
	}
	return true
}

// startProcess consumes all shards, as an order-consumer does, until stop or cleanup.
func (w *written) startProcess(name string, opt rabbit.Options) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	source := openSource(w.t, opt)
	var running sync.WaitGroup
	for shard := range opt.Shards {
		running.Go(func() {
			for ctx.Err() == nil {
				w.consume(ctx, name, source, shard)
			}
		})
	}
	stop = func() {
		cancel()
		running.Wait()
	}
	w.t.Cleanup(stop)
	return stop
}

func (w *written) consume(ctx context.Context, name string, source *rabbit.Source, shard int) {
	stream, err := source.Open(ctx, shard)
	if err != nil {
		time.Sleep(10 * time.Millisecond)
		return
	}
	defer stream.Close()
	for {
		select {
		case d, ok := <-stream.Deliveries():
			if !ok {
				return
			}
			w.write(name, shard, func() error { return stream.Ack(d.Tag) }, string(d.Body))
		case <-ctx.Done():
			return
		}
	}
}

// sameGoods returns goods n times, for n workers of a load.
func sameGoods(n int) []int64 { return slices.Repeat([]int64{goods}, n) }

// goodsOf returns the id of one goods per shard.
func goodsOf(shards int) []int64 {
	all := make([]int64, shards)
	for id := int64(1); slices.Contains(all, 0); id++ {
		if s := order.Shard(id, shards); all[s] == 0 {
			all[s] = id
		}
	}
	return all
}

// consumer is an entry of the broker's list of consumers.
type consumer struct {
	Queue     string  `json:"queue_name"`
	Active    bool    `json:"active"`
	Arguments [][]any `json:"arguments"` // name, type, value
}

// awaitOneActive waits until the broker lists this number of consumers for each shard. All need a
// priority, and exactly one must be active.
func awaitOneActive(
	t *testing.T, broker *servers.RabbitServer, vhost string, shards, consumers int,
) {
	t.Helper()
	eventually(t, func() bool {
		out, err := broker.Ctl(t.Context(), "list_consumers", "-p", vhost, "--formatter", "json",
			"queue_name", "active", "arguments")
		var all []consumer
		if err != nil || json.Unmarshal([]byte(out), &all) != nil {
			return false
		}
		listed, active := map[string]int{}, map[string]int{}
		for _, c := range all {
			if strings.Contains(fmt.Sprint(c.Arguments), "x-priority") {
				listed[c.Queue]++
			}
			if c.Active {
				active[c.Queue]++
			}
		}
		for shard := range shards {
			queue := fmt.Sprint("seckill.orders.", shard)
			if listed[queue] != consumers || active[queue] != 1 {
				return false
			}
		}
		return true
	}, "each shard has that many consumers, one of them active")
}

// TestConsumers_OneActivePerShardAndTakeoverAfterDeath checks that each shard has one active
// consumer while two processes consume all shards. When a process dies or leaves, another one takes
// over all shards. Every confirmed message is written, in order.
func TestConsumers_OneActivePerShardAndTakeoverAfterDeath(t *testing.T) {
	broker := env.RabbitMQ(t)
	address := broker.NewVHost(t)
	vhost := address[strings.LastIndex(address, "/")+1:]
	opt := rabbit.Options{URLs: []string{address}, Shards: 8}
	w := newWritten(t, opt.Shards)
	load := startLoad(t, runPublisher(t, opt), goodsOf(opt.Shards)...)

	wire, proxied := through(t, address)
	throughWire := opt
	throughWire.URLs = []string{proxied}
	w.startProcess("mortal", throughWire)
	eventually(t, func() bool { return fmt.Sprint(w.writers()) == "[mortal]" })
	stopSurvivor := w.startProcess("survivor", opt)
	awaitOneActive(t, broker, vhost, opt.Shards, 2)
	require.Zero(t, w.overlaps.Load(), "two processes wrote to one shard at once")

	died := time.Now()
	wire.Close()
	eventually(t, func() bool { return fmt.Sprint(w.writers()) == "[survivor]" })
	t.Logf("the survivor has all shards %v after the death", time.Since(died))
	awaitOneActive(t, broker, vhost, opt.Shards, 1)

	w.startProcess("successor", opt)
	w.overlaps.Store(0)
	stopSurvivor()
	eventually(t, func() bool { return fmt.Sprint(w.writers()) == "[successor]" })
	require.Zero(t, w.overlaps.Load(), "two processes wrote to one shard during a graceful leave")
	sent := load.stop()
	require.NotEmpty(t, sent)
	eventually(t, func() bool { return w.has(sent) }, "a confirmed message is not written")
	w.mu.Lock() // unconfirmed messages may still be written
	defer w.mu.Unlock()
	for shard, bodies := range w.bodies {
		require.True(t, slices.IsSorted(bodies), "messages of shard %d are out of order", shard)
	}
}
