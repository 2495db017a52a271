package rabbit

import (
	"fmt"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"flashsale.dev/seckill/internal/order"
)

// stream is one queue's deliveries.
type stream struct {
	link  *link
	queue string
	limit int // of deliveries
	ch    *amqp.Channel
	in    <-chan amqp.Delivery
	out   chan order.Delivery
	done  chan struct{}
	ended chan struct{}
	once  sync.Once
	err   error // of Close
}

var _ order.Stream = (*stream)(nil)

func newStream(l *link, queue string, limit int) *stream {
	return &stream{
		link: l, queue: queue, limit: limit,
		out: make(chan order.Delivery), done: make(chan struct{}), ended: make(chan struct{}),
	}
}

func (st *stream) consume(prefetch int) error {
	var err error
	if st.ch, err = st.link.Channel(); err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	if err = st.ch.Qos(prefetch, 0, false); err != nil {
		return fmt.Errorf("set prefetch: %w", err)
	}
	if st.in, err = st.ch.Consume(st.queue, "", false, false, false, false, nil); err != nil {
		return fmt.Errorf("consume %s: %w", st.queue, err)
	}
	return nil
}

// run passes deliveries on until the broker or Close ends them. amqp091-go closes in when the channel or the connection ends and when
// the broker cancels the consumer.
func (st *stream) run() {
	defer close(st.ended)
	defer close(st.out)
	for d := range st.in {
		select {
		case st.out <- delivery(d, st.queue, st.limit):
		case <-st.done:
			return
		}
	}
}

// Deliveries is closed when the connection is gone or the broker took the queue back: then Close, and open again.
func (st *stream) Deliveries() <-chan order.Delivery { return st.out }

// Ack acknowledges the delivery and every one before it. It does not wait for the broker: an ack that is lost with the connection
// means that its messages come again.
func (st *stream) Ack(tag uint64) error {
	if err := st.ch.Ack(tag, true); err != nil {
		return fmt.Errorf("ack %s: %w", st.queue, err)
	}
	return nil
}

// Close sends the acks that are under way, ends the connection, and so gives the rest back to the queue. It returns
// within two seconds; the broker finds out by itself if it does not answer. A second call returns what the first did.
func (st *stream) Close() error {
	st.once.Do(func() {
		close(st.done)
		if err := st.link.close(); err != nil {
			st.err = fmt.Errorf("close stream of %s: %w", st.queue, err)
		}
		<-st.ended
	})
	return st.err
}
