package rabbit

import (
	"fmt"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"flashsale.dev/seckill/internal/order"
)

// stream is one queue's deliveries.
type stream struct {
	link    *link
	queue   string
	opt     Options
	share   *balance  // nil: the queue is shared by all that read it
	present *presence // nil likewise
	ch      *amqp.Channel
	in      <-chan amqp.Delivery
	out     chan order.Delivery
	yield   chan struct{} // closed when another is to have the queue
	done    chan struct{} // closed by Close
	running sync.WaitGroup
	once    sync.Once
	err     error // of Close
}

var _ order.Stream = (*stream)(nil)

func newStream(l *link, queue string, opt Options) *stream {
	return &stream{
		link: l, queue: queue, opt: opt,
		out: make(chan order.Delivery), yield: make(chan struct{}), done: make(chan struct{}),
	}
}

// start begins to pass deliveries on and to look after the connection, until Close.
func (st *stream) start() {
	st.present.enter()
	st.running.Go(st.run)
	st.running.Go(st.look)
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

// run passes deliveries on until the broker, look or Close ends them. amqp091-go closes in when the channel or the connection ends and
// when the broker cancels the consumer.
func (st *stream) run() {
	defer close(st.out)
	defer st.share.gone(st)
	for {
		select {
		case d, ok := <-st.in:
			if !ok || !st.pass(d) {
				return
			}
		case <-st.yield:
			return
		case <-st.done:
			return
		}
	}
}

// pass hands one delivery to the user; false: there is no use in it any more.
func (st *stream) pass(d amqp.Delivery) bool {
	st.share.has(st)
	select {
	case st.out <- newDelivery(d, st.queue, st.opt.DeliveryLimit):
		return true
	case <-st.yield:
	case <-st.done:
	}
	return false
}

// Deliveries is closed when the connection is gone, the broker took the queue back, or another consumer is to have it: then Close,
// and open again. What was taken before can still be acknowledged until Close, unless the connection is gone.
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
		st.running.Wait()
		st.present.leave()
	})
	return st.err
}
