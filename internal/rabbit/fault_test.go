package rabbit_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/rabbit"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
	"flashsale.dev/seckill/internal/testing/testlog"
)

// TestBroker_Faults injects faults into one shared broker, one after the other.
func TestBroker_Faults(t *testing.T) {
	t.Parallel() // the test mostly waits for the broker
	f := faults{broker: servers.RabbitMQ(t)}
	t.Run("killed and restarted under load: nothing confirmed is lost", f.killedUnderLoad)
	t.Run("paused: publishes end at their deadline, then at once, and go on afterwards", f.paused)
	t.Run("paused for long: the connection is given up, and made again afterwards", f.givenUp)
	t.Run("a queue that refuses: down, given up, and made again once it takes messages", f.refusing)
	t.Run("memory alarm: down while it lasts", f.memoryAlarm)
	t.Run("restarted empty: every shard is reported as new", f.restartedEmpty)
}

type faults struct{ broker *servers.RabbitServer }

func (f faults) killedUnderLoad(t *testing.T) {
	opt := rabbit.Options{URLs: []string{f.broker.NewVHost(t)}}
	p, source := runPublisher(t, opt), openSource(t, opt)
	stream := must.Get(source.Open(t.Context(), 0))(t)
	load := startLoad(t, p, sameGoods(8)...)
	load.await(200)
	syncQueueNames(t, f.broker)
	require.NoError(t, f.broker.Kill())
	awaitEnd(t, stream)
	require.NoError(t, stream.Close())
	eventually(t, func() bool { return p.DownReason() != nil })
	require.ErrorIs(t, publish(t, p), order.ErrQueueDown)
	_, err := source.Open(t.Context(), 0)
	require.Error(t, err)
	require.NoError(t, f.broker.Restart(t.Context()))
	back := time.Now()
	awaitUp(t, p)
	t.Logf("up again %v after the broker", time.Since(back))
	load.await(len(load.confirmed()) + 200)
	takeAll(t, source, 0, load.stop())
}

func (f faults) paused(t *testing.T) {
	p := runPublisher(t, rabbit.Options{URLs: []string{f.broker.NewVHost(t)}})
	awaitPublish(t, p)
	require.NoError(t, f.broker.Pause())
	defer f.broker.Resume() //nolint:errcheck // the second call, if the test passes
	require.ErrorIs(t, publish(t, p), context.DeadlineExceeded)
	awaitError(t, p, order.ErrQueueDown)
	require.ErrorContains(t, p.DownReason(), "confirmed nothing")
	require.NoError(t, f.broker.Resume())
	awaitPublish(t, p)
}

func (f faults) givenUp(t *testing.T) {
	log := testlog.New()
	opt := rabbit.Options{
		URLs: []string{f.broker.NewVHost(t)}, StallAfter: 100 * time.Millisecond, MaxUnconfirmed: 1,
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	}
	p := runPublisher(t, opt)
	require.NoError(t, f.broker.Pause())
	defer f.broker.Resume() //nolint:errcheck // the second call, if the test passes
	published := make(chan error, 2)
	for range 2 { // the first is sent, and the second waits for room
		go func() {
			published <- p.Publish(context.WithoutCancel(t.Context()), goods, []byte("x"))
		}()
	}
	require.Error(t, <-published)
	require.Error(t, <-published)
	eventually(t, func() bool { return strings.Contains(fmt.Sprint(p.DownReason()), "connect to") })
	for line := log.Next(t); ; line = log.Next(t) {
		if strings.Contains(line, "nothing confirmed") {
			require.Contains(t, line, must.Get(url.Parse(opt.URLs[0]))(t).Host)
			break
		}
	}
	require.NoError(t, f.broker.Resume())
	awaitPublish(t, p)
}

// refusing fills the queue, so that RabbitMQ nacks every publish. The channel that startAtOnce
// describes does the same.
func (f faults) refusing(t *testing.T) {
	address := f.broker.NewVHost(t)
	vhost := address[strings.LastIndex(address, "/")+1:]
	p := runPublisher(t,
		rabbit.Options{URLs: []string{address}, StallAfter: 200 * time.Millisecond})
	awaitPublish(t, p)
	must.Get(f.broker.Ctl(t.Context(), "set_policy", "-p", vhost, "full", "^seckill.orders",
		`{"max-length":1}`))(t)
	awaitError(t, p, rabbit.ErrNacked)
	awaitError(t, p, order.ErrQueueDown) // a nack must not reset the stall timer
	for range 40 {                       // nor a new connection the reason
		_ = publish(t, p)
		require.Error(t, p.DownReason())
		time.Sleep(50 * time.Millisecond)
	}
	must.Get(f.broker.Ctl(t.Context(), "clear_policy", "-p", vhost, "full"))(t)
	awaitPublish(t, p)
	require.NoError(t, p.DownReason())
}

func (f faults) memoryAlarm(t *testing.T) {
	address, log := f.broker.NewVHost(t), testlog.New()
	host := must.Get(url.Parse(address))(t).Host
	p := runPublisher(t, rabbit.Options{
		URLs: []string{address}, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	logs := func(texts ...string) {
		t.Helper()
		line := log.Next(t)
		for _, text := range append(texts, host) {
			require.Contains(t, line, text)
		}
	}
	logs("INFO", "connected to RabbitMQ")
	// RabbitMQ reports alarms only to connections that have published.
	awaitPublish(t, p)
	watermark := func(fraction string) {
		must.Get(f.broker.Ctl(t.Context(), "set_vm_memory_high_watermark", fraction))(t)
	}
	watermark("0.0001")
	awaitError(t, p, order.ErrQueueDown)
	require.ErrorContains(t, p.DownReason(), "blocked")
	logs("WARN", "alarm", "low on memory")
	watermark("0.4")
	awaitPublish(t, p)
	logs("INFO", "takes messages again")
}

func (f faults) restartedEmpty(t *testing.T) {
	reported := make(queueReports, 64)
	opt := rabbit.Options{URLs: []string{f.broker.URL()}, Shards: 2, OnNewQueue: reported.add}
	p := runPublisher(t, opt)
	reported.await(t, 0, 1)
	require.NoError(t, p.MarkRepublished(t.Context(), 0))
	require.NoError(t, p.MarkRepublished(t.Context(), 1))
	require.NoError(t, f.broker.RestartEmpty(t.Context()))
	// A publisher without a callback may declare the queues first. It must not hide the data loss.
	runPublisher(t, rabbit.Options{URLs: opt.URLs, Shards: 2})
	awaitUp(t, p)
	reported.await(t, 0, 1)
	awaitPublish(t, p)
}

// syncQueueNames makes the broker store which log belongs to which quorum queue. Otherwise the
// broker does so up to 3 s after a declaration (the write cache of dets in ra 2.2, RabbitMQ 3.10).
// A broker that is killed earlier treats the latest queue as new: empty and without a leader. See
// ADR 21.
func syncQueueNames(t *testing.T, broker *servers.RabbitServer) {
	t.Helper()
	must.Get(broker.Ctl(t.Context(), "eval", "dets:sync(ra_directory_reverse)."))(t)
}

// awaitEnd reads a stream until it ends.
func awaitEnd(t *testing.T, s order.Stream) {
	t.Helper()
	deadline := time.After(timeout)
	for {
		select {
		case _, ok := <-s.Deliveries():
			if !ok {
				return
			}
		case <-deadline:
			t.Fatal("the stream did not end")
		}
	}
}

// takeAll requires that a shard delivers all confirmed messages.
func takeAll(t *testing.T, source order.Source, shard int, confirmed map[string]bool) {
	t.Helper()
	s := must.Get(source.Open(t.Context(), shard))(t)
	defer s.Close()
	deadline := time.After(timeout)
	for taken := 1; len(confirmed) > 0; taken++ {
		select {
		case d := <-s.Deliveries():
			delete(confirmed, string(d.Body))
			if taken%100 == 0 { // an ack covers the deliveries before it
				require.NoError(t, s.Ack(d.Tag))
			}
		case <-deadline:
			require.Empty(t, confirmed, "confirmed messages were not delivered")
		}
	}
}

func deleteQueue(t *testing.T, address, name string) {
	t.Helper()
	conn := must.Get(amqp.Dial(address))(t)
	defer conn.Close()
	ch := must.Get(conn.Channel())(t)
	must.Get(ch.QueueDelete(name, false, false, false))(t)
}
