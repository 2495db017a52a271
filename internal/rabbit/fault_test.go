package rabbit_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/rabbit"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/servers"
)

// The faults share one broker, one after the other.
func TestBroker_Faults(t *testing.T) {
	broker := servers.RabbitMQ(t)
	for _, fault := range []struct {
		name string
		test func(*testing.T, *servers.RabbitServer)
	}{
		{"killed and restarted under load: nothing confirmed is lost", killedUnderLoad},
		{"paused: publishes end at their deadline, then at once, and go on afterwards", paused},
		{"paused for long: the connection is given up, and made again afterwards", givenUp},
		{"a queue that refuses: down, given up, and made again once it takes messages", refusing},
		{"memory alarm: down while it lasts", memoryAlarm},
		{"restarted empty: every shard is reported as new", restartedEmpty},
	} {
		t.Run(fault.name, func(t *testing.T) { fault.test(t, broker) })
	}
}

func killedUnderLoad(t *testing.T, broker *servers.RabbitServer) {
	opt := rabbit.Options{URLs: []string{broker.NewVHost(t)}}
	p, source := runPublisher(t, opt), openSource(t, opt)
	stream := must.Get(source.Open(t.Context(), 0))(t)
	load := startLoad(t, p)
	load.await(200)
	syncQueueNames(t, broker)
	require.NoError(t, broker.Kill())
	awaitEnd(t, stream)
	require.NoError(t, stream.Close())
	eventually(t, func() bool { return !p.Up() })
	require.ErrorIs(t, p.Publish(t.Context(), goods, []byte("x")), order.ErrQueueDown)
	_, err := source.Open(t.Context(), 0)
	require.Error(t, err)
	require.NoError(t, broker.Restart(t.Context()))
	back := time.Now()
	awaitUp(t, p)
	t.Logf("up again %v after the broker", time.Since(back))
	load.await(len(load.confirmed()) + 200)
	lost := load.stop()
	takeAll(t, source, lost)
	require.Empty(t, lost, "confirmed and not delivered")
}

func paused(t *testing.T, broker *servers.RabbitServer) {
	p := runPublisher(t, rabbit.Options{URLs: []string{broker.NewVHost(t)}})
	require.NoError(t, p.Publish(t.Context(), goods, []byte("x")))
	require.NoError(t, broker.Pause())
	defer broker.Resume() //nolint:errcheck // a second call if the test passes
	require.ErrorIs(t, p.Publish(t.Context(), goods, []byte("x")), context.DeadlineExceeded)
	eventually(t, func() bool {
		return errors.Is(p.Publish(t.Context(), goods, []byte("x")), order.ErrQueueDown)
	})
	require.Contains(t, p.DownReason(), "confirmed nothing")
	require.NoError(t, broker.Resume())
	awaitUp(t, p)
	require.NoError(t, p.Publish(t.Context(), goods, []byte("x")))
}

func givenUp(t *testing.T, broker *servers.RabbitServer) {
	opt := rabbit.Options{
		URLs: []string{broker.NewVHost(t)}, StallAfter: 100 * time.Millisecond, MaxUnconfirmed: 1,
	}
	p := runPublisher(t, opt)
	require.NoError(t, broker.Pause())
	defer broker.Resume() //nolint:errcheck // a second call if the test passes
	published := make(chan error, 2)
	for range 2 { // one is sent, the other waits for room
		go func() {
			published <- p.Publish(context.WithoutCancel(t.Context()), goods, []byte("x"))
		}()
	}
	require.Error(t, <-published)
	require.Error(t, <-published)
	eventually(t, func() bool { return strings.Contains(p.DownReason(), "connect to") })
	require.NoError(t, broker.Resume())
	awaitUp(t, p)
	require.NoError(t, p.Publish(t.Context(), goods, []byte("x")))
}

// refusing fills the queue, so that RabbitMQ nacks every publish, as it does on the channel that
// startAtOnce describes.
func refusing(t *testing.T, broker *servers.RabbitServer) {
	address := broker.NewVHost(t)
	vhost := address[strings.LastIndex(address, "/")+1:]
	p := runPublisher(t,
		rabbit.Options{URLs: []string{address}, StallAfter: 200 * time.Millisecond})
	require.NoError(t, p.Publish(t.Context(), goods, []byte("x")))
	must.Get(broker.Ctl(t.Context(), "set_policy", "-p", vhost, "full", "^seckill.orders",
		`{"max-length":1}`))(t)
	eventually(t, func() bool {
		return errors.Is(p.Publish(t.Context(), goods, []byte("x")), rabbit.ErrNacked)
	})
	eventually(t, func() bool { // nacks are no sign of life
		return errors.Is(p.Publish(t.Context(), goods, []byte("x")), order.ErrQueueDown)
	})
	must.Get(broker.Ctl(t.Context(), "clear_policy", "-p", vhost, "full"))(t)
	awaitPublish(t, p)
}

func memoryAlarm(t *testing.T, broker *servers.RabbitServer) {
	p := runPublisher(t, rabbit.Options{URLs: []string{broker.NewVHost(t)}})
	// RabbitMQ reports alarms only to connections that have published.
	require.NoError(t, p.Publish(t.Context(), goods, []byte("x")))
	watermark := func(fraction string) {
		must.Get(broker.Ctl(t.Context(), "set_vm_memory_high_watermark", fraction))(t)
	}
	watermark("0.0001")
	eventually(t, func() bool {
		return errors.Is(p.Publish(t.Context(), goods, []byte("x")), order.ErrQueueDown)
	})
	require.Contains(t, p.DownReason(), "blocked")
	watermark("0.4")
	awaitUp(t, p)
	require.NoError(t, p.Publish(t.Context(), goods, []byte("x")))
}

func restartedEmpty(t *testing.T, broker *servers.RabbitServer) {
	reported := newQueueReports()
	opt := rabbit.Options{URLs: []string{broker.URL()}, Shards: 2, OnNewQueue: reported.add}
	p := runPublisher(t, opt)
	reported.await(t, 0, 1)
	require.NoError(t, p.MarkRepublished(t.Context(), 0))
	require.NoError(t, p.MarkRepublished(t.Context(), 1))
	require.NoError(t, broker.RestartEmpty(t.Context()))
	// A publisher without a callback may declare the queues first. It must not hide the loss.
	runPublisher(t, rabbit.Options{URLs: opt.URLs, Shards: 2})
	awaitUp(t, p)
	reported.await(t, 0, 1)
	require.NoError(t, p.Publish(t.Context(), goods, []byte("x")))
}

// syncQueueNames makes the broker store which log belongs to which quorum queue. Without it the
// broker does so within 3 s of a declaration (the write cache of dets in ra 2.2, RabbitMQ 3.10). If
// it is killed before, it takes the latest queue for a new one, empty and without a leader. See ADR
// 21.
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

// takeAll consumes shard 0 until all wanted messages have come.
func takeAll(t *testing.T, source order.Source, wanted map[string]bool) {
	t.Helper()
	takeAllOf(t, source, 0, wanted)
}

func takeAllOf(t *testing.T, source order.Source, shard int, wanted map[string]bool) {
	t.Helper()
	s := must.Get(source.Open(t.Context(), shard))(t)
	defer s.Close()
	deadline := time.After(timeout)
	for len(wanted) > 0 {
		select {
		case d := <-s.Deliveries():
			delete(wanted, string(d.Body))
			require.NoError(t, s.Ack(d.Tag))
		case <-deadline:
			return
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
