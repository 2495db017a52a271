package rabbit

import (
	"context"
	"errors"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"flashsale.dev/seckill/internal/order"
)

// A stream queries its queue every livenessEvery and disconnects if the broker does not answer
// within livenessTimeout. AMQP's heartbeats need three times as long to detect a paused node.
const (
	livenessEvery   = time.Second
	livenessTimeout = 5 * time.Second
)

// stream is one queue's deliveries.
type stream struct {
	conn    *connection
	queue   string
	opt     Options
	ch      *amqp.Channel
	in      <-chan amqp.Delivery
	out     chan order.Delivery
	done    chan struct{} // closed by Close
	running sync.WaitGroup
	close   func() error // ends the stream once, and returns the same error again
}

var _ order.Stream = (*stream)(nil)

func newStream(conn *connection, queue string, opt Options) *stream {
	st := &stream{
		conn: conn, queue: queue, opt: opt, out: make(chan order.Delivery),
		done: make(chan struct{}),
	}
	st.close = sync.OnceValue(func() error {
		close(st.done)
		err := st.conn.close()
		st.running.Wait()
		return wrap(err, "close stream of %s", st.queue)
	})
	return st
}

// consume starts the consumer. It sets the prefetch first, because RabbitMQ applies it to later
// consumers of the channel only.
func (st *stream) consume(args amqp.Table) error {
	var err error
	if st.ch, err = st.conn.channel(); err != nil {
		return err
	}
	if err = st.ch.Qos(prefetch, 0, false); err != nil {
		return wrap(err, "set prefetch")
	}
	st.in, err = st.ch.Consume(st.queue, "", false, false, false, false, args)
	return wrap(err, "consume %s", st.queue)
}

// deliver passes deliveries on until Close, or until amqp091-go closes in: when the channel or the
// connection ends, and when the broker cancels the consumer.
func (st *stream) deliver() {
	defer close(st.out)
	for {
		select {
		case d, ok := <-st.in:
			if !ok {
				return
			}
			select {
			case st.out <- newDelivery(d, st.queue, st.opt.DeliveryLimit):
			case <-st.done:
				return
			}
		case <-st.done:
			return
		}
	}
}

// checkLiveness ends the connection when the broker stops answering.
func (st *stream) checkLiveness() {
	tick := time.NewTicker(livenessEvery)
	defer tick.Stop()
	for {
		select {
		case <-st.done:
			return
		case <-tick.C:
		}
		if !st.alive() {
			st.conn.disconnect()
			return
		}
	}
}

// alive reports whether the broker answers. An answer that there is no such queue counts too.
func (st *stream) alive() bool {
	err := st.conn.withTimeout(context.Background(), livenessTimeout, func() error {
		_, err := st.conn.queueExists(st.queue)
		return err
	})
	var closed *amqp.Error
	return err == nil || errors.As(err, &closed) && closed.Server && !errors.Is(err, amqp.ErrClosed)
}

// Deliveries is closed when the connection has ended or the broker has cancelled the consumer. The
// user then calls Close and opens the shard again.
func (st *stream) Deliveries() <-chan order.Delivery { return st.out }

// Ack acknowledges the delivery and all before it. It does not wait for the broker. If the
// connection loses the ack, the broker delivers the messages again.
func (st *stream) Ack(tag uint64) error {
	return wrap(st.ch.Ack(tag, true), "ack %s", st.queue)
}

// Close sends the acks in flight and closes the connection, which returns the unacknowledged
// messages to the queue. It returns within two seconds. A second call returns the same error.
//
// It does not cancel the consumer first. RabbitMQ 3.10 would then start the next consumer while the
// first one still has unacknowledged messages.
func (st *stream) Close() error { return st.close() }
