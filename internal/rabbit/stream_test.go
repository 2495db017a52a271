package rabbit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/rabbit"
	"flashsale.dev/seckill/internal/testing/must"
	"flashsale.dev/seckill/internal/testing/queuesuite"
)

// TestQueue_KeepsTheContract runs the tests that every queue must pass.
func TestQueue_KeepsTheContract(t *testing.T) {
	broker := env.RabbitMQ(t)
	queuesuite.Run(t, func(t *testing.T) queuesuite.Queue {
		opt := rabbit.Options{URLs: []string{broker.NewVHost(t)}, Shards: 4}
		return queuesuite.Queue{Publisher: runPublisher(t, opt), Source: openSource(t, opt)}
	})
}

func take(t *testing.T, s order.Stream) order.Delivery {
	t.Helper()
	select {
	case d, ok := <-s.Deliveries():
		require.True(t, ok, "the stream ended")
		return d
	case <-time.After(timeout):
		t.Fatal("no delivery")
		panic("unreachable")
	}
}

// TestStream_ConsumerKilled25TimesDeadLettersNothing checks that 25 lost connections of a consumer
// make no message a dead letter. The broker delivers all messages again, in order.
func TestStream_ConsumerKilled25TimesDeadLettersNothing(t *testing.T) {
	address := env.RabbitMQ(t).NewVHost(t)
	cutter, proxied := through(t, address)
	p := runPublisher(t, rabbit.Options{URLs: []string{address}})
	for i := range 100 {
		require.NoError(t, p.Publish(t.Context(), goods, fmt.Append(nil, i)))
	}
	source := openSource(t, rabbit.Options{URLs: []string{proxied}})
	for range 25 {
		s := must.Get(source.Open(t.Context(), 0))(t)
		require.Equal(t, "0", string(take(t, s).Body))
		cutter.Drop()
		awaitEnd(t, s)
		require.NoError(t, s.Close())
	}
	s := must.Get(source.Open(t.Context(), 0))(t)
	for i := range 100 {
		d := take(t, s)
		require.Equal(t, fmt.Sprint(i), string(d.Body))
		require.Equal(t, 26, d.Attempts)
		require.NoError(t, s.Ack(d.Tag))
	}
	require.NoError(t, s.Close())
}

// TestDeadLetter_HasAttemptsAndOrigin checks that a dead letter keeps its number of deliveries,
// its publish time and its queue.
func TestDeadLetter_HasAttemptsAndOrigin(t *testing.T) {
	opt := rabbit.Options{URLs: []string{env.RabbitMQ(t).NewVHost(t)}, Shards: 2, DeliveryLimit: 2}
	p, source := runPublisher(t, opt), openSource(t, opt)
	began := time.Now().Truncate(time.Second)
	require.NoError(t, p.Publish(t.Context(), goods, []byte("poison")))
	shard := order.Shard(goods, 2)
	for attempt := range 3 {
		s := must.Get(source.Open(t.Context(), shard))(t)
		require.Equal(t, attempt+1, take(t, s).Attempts)
		require.NoError(t, s.Close())
	}
	dead := must.Get(source.OpenDead(t.Context()))(t)
	d := take(t, dead)
	require.Equal(t, "poison", string(d.Body))
	require.Equal(t, fmt.Sprint("seckill.orders.", shard), d.Origin)
	require.Equal(t, 4, d.Attempts,
		"three deliveries from its queue and one from the dead letter queue")
	require.False(t, d.FirstSeenAt.Before(began), "first seen too early: %v", d.FirstSeenAt)
	require.NoError(t, dead.Close())
	dead = must.Get(source.OpenDead(t.Context()))(t)
	d.Attempts++
	again := take(t, dead)
	require.Equal(t, d.DeliveryInfo, again.DeliveryInfo)
	require.NoError(t, dead.Ack(again.Tag))
	require.NoError(t, dead.Close())
}

// TestStream_EndsWithADeletedQueue checks that a stream ends if its queue is deleted, and that the
// next stream declares the queue again.
func TestStream_EndsWithADeletedQueue(t *testing.T) {
	opt := rabbit.Options{URLs: []string{env.RabbitMQ(t).NewVHost(t)}}
	source := openSource(t, opt)
	s := must.Get(source.Open(t.Context(), 0))(t)
	deleteQueue(t, opt.URLs[0], "seckill.orders.0")
	awaitEnd(t, s)
	require.NoError(t, s.Close())
	s = must.Get(source.Open(t.Context(), 0))(t, "the stream declares the queue again")
	require.NoError(t, s.Close())
}

// TestStream_ReportsAQueueThatVanishedWithoutPublishes deletes a queue while nobody publishes. The
// consumer, or another program, declares it again. The consumer's process must then publish what
// the queue had.
func TestStream_ReportsAQueueThatVanishedWithoutPublishes(t *testing.T) {
	reported := make(queueReports, 64)
	opt := rabbit.Options{URLs: []string{env.RabbitMQ(t).NewVHost(t)}, OnNewQueue: reported.add}
	p, source := runPublisher(t, opt), openSource(t, opt)
	api := runPublisher(t, rabbit.Options{URLs: opt.URLs})
	reported.await(t, 0)
	require.NoError(t, p.MarkRepublished(t.Context(), 0))
	open := func() order.Stream { return must.Get(source.Open(t.Context(), 0))(t) }
	vanish := func(s order.Stream) {
		deleteQueue(t, opt.URLs[0], "seckill.orders.0")
		awaitEnd(t, s)
		require.NoError(t, s.Close())
	}
	s := open()
	require.Empty(t, reported, "the queue is not new")
	vanish(s)
	s = open()
	reported.await(t, 0)
	require.NoError(t, p.MarkRepublished(t.Context(), 0))
	vanish(s)
	require.ErrorIs(t, publish(t, api), rabbit.ErrReturned)
	awaitPublish(t, api) // it has declared the queue
	s = open()
	reported.await(t, 0)
	require.NoError(t, s.Close())
}

// TestStream_CloseWithUnreadDeliveries checks that Close does not wait for a consumer that has
// stopped reading.
func TestStream_CloseWithUnreadDeliveries(t *testing.T) {
	opt := rabbit.Options{URLs: []string{env.RabbitMQ(t).NewVHost(t)}}
	p, source := runPublisher(t, opt), openSource(t, opt)
	for range 10 {
		require.NoError(t, publish(t, p))
	}
	s := must.Get(source.Open(t.Context(), 0))(t)
	take(t, s)
	require.NoError(t, s.Close())
	awaitEnd(t, s)
}

// TestStream_TakesLargeMessagesFewAtATime fills a queue with more bytes than a consumer may hold.
// The prefetch alone would deliver all of them at once. Before that, a stream has the same messages
// one by one, which it may.
func TestStream_TakesLargeMessagesFewAtATime(t *testing.T) {
	const messages, few = 40, 4
	opt := rabbit.Options{
		URLs: []string{env.RabbitMQ(t).NewVHost(t)}, PublishTimeout: timeout, StallAfter: timeout,
	}
	p, source := runPublisher(t, opt), openSource(t, opt)
	body := make([]byte, 2<<20)
	s := must.Get(source.Open(t.Context(), 0))(t)
	for range messages {
		require.NoError(t, p.Publish(t.Context(), goods, body))
		require.NoError(t, s.Ack(take(t, s).Tag))
	}
	require.NoError(t, s.Close())

	for i := range messages {
		body[0] = byte(i)
		require.NoError(t, p.Publish(t.Context(), goods, body))
	}
	s = must.Get(source.Open(t.Context(), 0))(t)
	awaitEnd(t, s)
	require.ErrorContains(t, s.Close(), "another program publishes to our queue")
	s = must.Get(source.Open(t.Context(), 0))(t)
	for i := range messages {
		d := take(t, s)
		require.EqualValues(t, i, d.Body[0])
		if i%few < few-1 {
			continue
		}
		select {
		case <-s.Deliveries():
			t.Fatal("a message more than the stream should hold")
		case <-time.After(100 * time.Millisecond):
		}
		require.NoError(t, s.Ack(d.Tag))
	}
	require.NoError(t, s.Close())
}

// TestStream_CloseHasTheBrokersReason makes the broker end a stream, as it does if a batch is
// acknowledged later than its consumer_timeout permits. Only the broker's reason names what to do.
func TestStream_CloseHasTheBrokersReason(t *testing.T) {
	opt := rabbit.Options{URLs: []string{env.RabbitMQ(t).NewVHost(t)}}
	s := must.Get(openSource(t, opt).Open(t.Context(), 0))(t)
	require.NoError(t, s.Ack(7)) // no such delivery
	awaitEnd(t, s)
	err := s.Close()
	require.ErrorContains(t, err, "unknown delivery tag 7")
	require.Equal(t, err, s.Close())
}
