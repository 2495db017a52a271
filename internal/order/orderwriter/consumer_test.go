package orderwriter_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/orderwriter"
)

// queue is a source of one shard, and its stream. Its messages are malformed, so that each becomes
// a dead letter. It records when the messages of a batch are acknowledged.
type queue struct {
	orderwriter.BatchStore
	deliveries chan order.Delivery
	began      time.Time
	closed     bool // the stream has ended
	sent, dead uint64
	batches    []batch
}

type batch struct {
	messages uint64
	after    time.Duration // since the consumer started
}

func (q *queue) Shards() int                                     { return 1 }
func (q *queue) Open(context.Context, int) (order.Stream, error) { return q, nil }
func (q *queue) Deliveries() <-chan order.Delivery               { return q.deliveries }
func (q *queue) Close() error                                    { return nil }

func (q *queue) AddDeadLetter(context.Context, order.DeadLetter) error {
	q.dead++
	return nil
}

func (q *queue) Ack(uint64) error {
	if q.closed {
		return order.ErrQueueDown
	}
	q.batches = append(q.batches, batch{q.dead, time.Since(q.began)})
	q.dead = 0
	return nil
}

func (q *queue) send(messages int) {
	for range messages {
		q.sent++
		q.deliveries <- order.Delivery{Body: []byte("{"), Tag: q.sent}
	}
}

// run runs a consumer until stop is called.
func run(t *testing.T, c *orderwriter.Consumer) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		require.NoError(t, <-ended)
	}
}

// consumer returns a consumer whose full batches have 4 messages.
func (q *queue) consumer(linger time.Duration) *orderwriter.Consumer {
	return &orderwriter.Consumer{
		Writer: &orderwriter.Writer{Store: q, Log: slog.New(slog.DiscardHandler)},
		Source: q, BatchSize: 4, Linger: linger,
	}
}

// TestConsumer_BatchesKeepADistanceUnlessFull checks the times of batches on a clock that moves
// only while nothing runs.
func TestConsumer_BatchesKeepADistanceUnlessFull(t *testing.T) {
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		q := &queue{deliveries: make(chan order.Delivery), began: time.Now()}
		stop := run(t, q.consumer(50*ms))
		q.send(1) // in a queue that had no consumer before
		time.Sleep(10 * ms)
		q.send(1)
		time.Sleep(990 * ms)
		q.send(1) // alone, long after the last batch
		time.Sleep(10 * ms)
		q.send(2) // soon after it
		time.Sleep(990 * ms)
		q.send(1)
		synctest.Wait() // it is written
		q.send(9)       // two full batches, and one that is not
		time.Sleep(time.Second)
		stop()
		require.Equal(t, []batch{
			{2, 50 * ms},
			{1, 1000 * ms},
			{2, 1050 * ms},
			{1, 2000 * ms},
			{4, 2000 * ms},
			{4, 2000 * ms},
			{1, 2050 * ms},
		}, q.batches)
	})
}

// TestConsumer_EndedStreamWritesNothing ends a stream while a batch is collected. The queue
// redelivers its message, which would be written twice.
func TestConsumer_EndedStreamWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{deliveries: make(chan order.Delivery)}
		stop := run(t, q.consumer(time.Minute))
		q.send(1)
		q.closed = true
		close(q.deliveries)
		time.Sleep(time.Second)
		stop()
		require.Zero(t, q.dead)
	})
}
