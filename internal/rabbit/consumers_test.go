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

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/rabbit"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// written records the messages that consumers write, in place of MySQL.
type written struct {
	t        *testing.T
	writing  []sync.Mutex // one per shard, held from a delivery until its ack
	overlaps atomic.Int64 // writes that began during another write to the same shard

	mu     sync.Mutex
	by     []string   // by shard: the process of the latest write
	bodies [][]string // by shard, in the order of publishing
}

// write records a delivery that is later than those before, and acknowledges it. An earlier one is
// delivered again; if it is new, the broker has changed the order, and the body stays missing.
func (w *written) write(process string, shard int, stream order.Stream, d order.Delivery) {
	if !w.writing[shard].TryLock() {
		w.overlaps.Add(1)
		w.writing[shard].Lock()
	}
	defer w.writing[shard].Unlock()
	time.Sleep(200 * time.Microsecond) // MySQL takes about as long
	w.mu.Lock()
	w.by[shard] = process
	known := w.bodies[shard]
	if body := string(d.Body); len(known) == 0 || body > known[len(known)-1] {
		w.bodies[shard] = append(known, body)
	}
	w.mu.Unlock()
	_ = stream.Ack(d.Tag) // on a lost connection it fails, and the broker delivers d again
}

// awaitWriter waits until each shard's latest write is by this process.
func (w *written) awaitWriter(process string) {
	w.t.Helper()
	eventually(w.t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return !slices.ContainsFunc(w.by, func(by string) bool { return by != process })
	}, process)
}

// awaitShared waits until each of these processes has the latest write of an equal share of the
// shards.
func (w *written) awaitShared(processes ...string) {
	w.t.Helper()
	eventually(w.t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		count := map[string]int{}
		for _, by := range w.by {
			count[by]++
		}
		return !slices.ContainsFunc(processes, func(p string) bool {
			return count[p] != len(w.by)/len(processes)
		})
	}, "each process has its share")
}

// awaitAll waits until these messages are written.
func (w *written) awaitAll(missing map[string]bool) {
	w.t.Helper()
	eventually(w.t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, body := range slices.Concat(w.bodies...) {
			delete(missing, body)
		}
		return len(missing) == 0
	}, "a confirmed message is not written, or out of order")
}

// startProcess consumes all shards and the dead letters, as an order-consumer does, until stop or
// cleanup.
func (w *written) startProcess(name string, opt rabbit.Options) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	source := openSource(w.t, opt)
	var running sync.WaitGroup
	dead := must.Get(source.OpenDead(ctx))(w.t)
	running.Go(func() {
		<-ctx.Done()
		_ = dead.Close() // the connection may have ended
	})
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
			w.write(name, shard, stream, d)
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

// awaitOneActive waits until the broker lists this number of consumers for each shard. All need a
// priority, and exactly one must be active.
func awaitOneActive(
	t *testing.T, broker *servers.RabbitServer, vhost string, shards, consumers int,
) {
	t.Helper()
	eventually(t, func() bool {
		out, err := broker.Ctl(t.Context(), "list_consumers", "-p", vhost, "--formatter", "json",
			"queue_name", "active", "arguments")
		var all []struct {
			Queue     string  `json:"queue_name"`
			Active    bool    `json:"active"`
			Arguments [][]any `json:"arguments"` // name, type, value
		}
		if err != nil || json.Unmarshal([]byte(out), &all) != nil {
			return false
		}
		count := map[string]int{}
		for _, c := range all {
			if strings.Contains(fmt.Sprint(c.Arguments), "x-priority") {
				count[fmt.Sprint(c.Queue, " active ", c.Active)]++
			}
		}
		for shard := range shards {
			queue := fmt.Sprint("seckill.orders.", shard)
			if count[queue+" active true"] != 1 || count[queue+" active false"] != consumers-1 {
				return false
			}
		}
		return true
	}, "each shard has that many consumers, one of them active")
}

// TestConsumers_OneActivePerShardAndTakeoverAfterDeath checks that each shard has one active
// consumer while two processes consume all shards, and that the first one hands half of them over.
// When a process dies or leaves, another one takes over all shards. Every confirmed message is
// written, in order.
func TestConsumers_OneActivePerShardAndTakeoverAfterDeath(t *testing.T) {
	broker := env.RabbitMQ(t)
	address := broker.NewVHost(t)
	vhost := address[strings.LastIndex(address, "/")+1:]
	opt := rabbit.Options{URLs: []string{address}, Shards: 16}
	w := &written{
		t: t, writing: make([]sync.Mutex, opt.Shards), by: make([]string, opt.Shards),
		bodies: make([][]string, opt.Shards),
	}
	load := startLoad(t, runPublisher(t, opt), goodsOf(opt.Shards)...)

	wire, proxied := through(t, address)
	throughWire := opt
	throughWire.URLs = []string{proxied}
	w.startProcess("mortal", throughWire)
	w.awaitWriter("mortal")
	stopSurvivor := w.startProcess("survivor", opt)
	awaitOneActive(t, broker, vhost, opt.Shards, 2)
	w.awaitShared("mortal", "survivor")
	require.Zero(t, w.overlaps.Load(), "two processes wrote to one shard at once")

	died := time.Now()
	wire.Close()
	w.awaitWriter("survivor")
	t.Logf("the survivor has all shards %v after the death", time.Since(died))
	awaitOneActive(t, broker, vhost, opt.Shards, 1)

	w.startProcess("successor", opt)
	w.overlaps.Store(0)
	stopSurvivor()
	w.awaitWriter("successor")
	require.Zero(t, w.overlaps.Load(), "two processes wrote to one shard during a graceful leave")
	sent := load.stop()
	require.NotEmpty(t, sent)
	w.awaitAll(sent)
}

// TestConsumers_DeadOnesHoldNoMessages lets two processes die one after the other, each with
// unacknowledged messages of every shard. The second one has consumed since before the death of the
// first one. A third process must get all messages.
//
// RabbitMQ 4.0 to 4.3 fails this if the second consumer has a higher priority (see samePriority).
func TestConsumers_DeadOnesHoldNoMessages(t *testing.T) {
	address := env.RabbitMQ(t).NewVHost(t)
	opt := rabbit.Options{URLs: []string{address}, Shards: 16}
	p := runPublisher(t, opt)
	for _, id := range goodsOf(opt.Shards) {
		require.NoError(t, p.Publish(t.Context(), id, []byte("x")))
	}
	open := func(address string) (streams []order.Stream) {
		throughWire := opt
		throughWire.URLs = []string{address}
		source := openSource(t, throughWire)
		for shard := range opt.Shards {
			s := must.Get(source.Open(t.Context(), shard))(t)
			t.Cleanup(func() { _ = s.Close() })
			streams = append(streams, s)
		}
		return streams
	}
	takeOfEach := func(streams []order.Stream) {
		for _, s := range streams {
			take(t, s)
		}
	}
	firstWire, throughFirst := through(t, address)
	secondWire, throughSecond := through(t, address)
	first := open(throughFirst)
	takeOfEach(first)
	second := open(throughSecond)
	firstWire.Close()
	takeOfEach(second)
	secondWire.Close()
	takeOfEach(open(address))
}

// consumeAt consumes shard 0 with a priority, as programs of older releases do, until the
// connection is closed.
func consumeAt(
	t *testing.T, address string, priority int32,
) (*amqp.Connection, <-chan amqp.Delivery) {
	t.Helper()
	conn := must.Get(amqp.Dial(address))(t)
	t.Cleanup(func() { _ = conn.Close() })
	ch := must.Get(conn.Channel())(t)
	require.NoError(t, ch.Qos(512, 0, false))
	return conn, must.Get(ch.Consume("seckill.orders.0", "", false, false, false, false,
		amqp.Table{"x-priority": priority}))(t)
}

// TestConsumers_OutrankDeadOnesOfOlderReleases lets two consumers of an older release die, after
// which RabbitMQ 4 keeps the first one among those that wait. A consumer of this release gets the
// messages.
func TestConsumers_OutrankDeadOnesOfOlderReleases(t *testing.T) {
	opt := rabbit.Options{URLs: []string{env.RabbitMQ(t).NewVHost(t)}}
	require.NoError(t, publish(t, runPublisher(t, opt)))
	await := func(deliveries <-chan amqp.Delivery) {
		select {
		case <-deliveries:
		case <-time.After(timeout):
			t.Fatal("no delivery")
		}
	}
	first, deliveries := consumeAt(t, opt.URLs[0], 1)
	await(deliveries)
	second, deliveries := consumeAt(t, opt.URLs[0], 2)
	require.NoError(t, first.Close())
	await(deliveries)
	present := must.Get(openSource(t, opt).Open(t.Context(), 0))(t)
	require.NoError(t, second.Close())
	take(t, present)
	require.NoError(t, present.Close())
}
