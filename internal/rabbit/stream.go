package rabbit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"flashsale.dev/seckill/internal/order"
)

// A stream queries the broker every livenessEvery and disconnects if it does not answer within
// livenessTimeout. AMQP's heartbeats need three times as long to detect a paused node.
const (
	livenessEvery   = time.Second
	livenessTimeout = 5 * time.Second
)

// errTooLarge is the reason for which a stream ended itself.
var errTooLarge = errors.New("the messages in flight have more than 64 MiB, too much for orders: " +
	"taking few at a time; another program publishes to our queue")

// stream is one queue's deliveries.
type stream struct {
	conn    *connection
	queue   string
	opt     Options
	ch      *amqp.Channel
	in      <-chan amqp.Delivery
	ended   chan *amqp.Error // why the broker closed the channel
	out     chan order.Delivery
	done    chan struct{} // closed by Close
	running sync.WaitGroup
	close   func() error // ends the stream once, and returns the same error again

	shares      *shares       // nil for dead letters
	activeSince atomic.Int64  // time of the first delivery, in nanoseconds; 0 before that
	handedOver  chan struct{} // closed to end the deliveries

	acked    atomic.Uint64    // the last tag
	few      *atomic.Bool     // the queue's next stream takes few messages at a time
	enough   <-chan time.Time // ends a stream that takes few; nil for others
	tooLarge bool             // the stream has ended itself; valid after running
}

var _ order.Stream = (*stream)(nil)

func newStream(
	conn *connection, queue string, opt Options, shares *shares, few *atomic.Bool,
) *stream {
	st := &stream{
		conn: conn, queue: queue, opt: opt, out: make(chan order.Delivery),
		done: make(chan struct{}), shares: shares, handedOver: make(chan struct{}),
		ended: make(chan *amqp.Error, 1), few: few,
	}
	st.close = sync.OnceValue(func() error {
		st.leave()
		close(st.done)
		err := st.conn.close()
		st.running.Wait()
		select {
		case reason := <-st.ended:
			if reason != nil && reason.Server { // else this process or the network has ended it
				err = errors.Join(fmt.Errorf("channel ended: %w", reason), err)
			}
		default:
		}
		if st.tooLarge {
			err = errors.Join(errTooLarge, err)
		}
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
	st.ch.NotifyClose(st.ended)
	messages := prefetch
	if st.few.Swap(false) {
		messages, st.enough = fewMessages, time.After(fewFor)
	}
	if err = st.ch.Qos(messages, 0, false); err != nil {
		return wrap(err, "set prefetch")
	}
	st.in, err = st.ch.Consume(st.queue, "", false, false, false, false, args)
	return wrap(err, "consume %s", st.queue)
}

// run starts the goroutines, which end with the stream. They are separate, because the liveness
// check may block for its whole timeout.
func (st *stream) run() {
	if st.shares != nil {
		st.shares.add(st)
	}
	st.running.Go(st.deliver)
	st.running.Go(st.checkLiveness)
}

// leave ends the counting of the stream as one of its process.
func (st *stream) leave() {
	if st.shares != nil {
		st.shares.remove(st)
	}
}

// deliver passes deliveries on until Close, until the shard is handed over, or until amqp091-go
// closes in: when the channel or the connection ends, and when the broker cancels the consumer. It
// takes each delivery at once, because the library would keep those that wait and count no bytes.
func (st *stream) deliver() {
	defer close(st.out)
	defer st.leave()
	var waiting []order.Delivery
	var sizes []int      // of the bodies after the first counted ones
	held := 0            // their sum
	counted := uint64(0) // acknowledged ones that held does not include
	for {
		var out chan<- order.Delivery
		var next order.Delivery
		if len(waiting) > 0 {
			out, next = st.out, waiting[0]
		}
		select {
		case d, ok := <-st.in:
			if !ok {
				return
			}
			st.activeSince.CompareAndSwap(0, time.Now().UnixNano())
			for ; counted < st.acked.Load() && len(sizes) > 0; counted++ {
				sizes, held = sizes[1:], held-sizes[0]
			}
			sizes, held = append(sizes, len(d.Body)), held+len(d.Body)
			if held > maxHeld && st.enough == nil {
				st.tooLarge = true
				st.few.Store(true)
				st.conn.socket.abort()
				return
			}
			waiting = append(waiting, newDelivery(d, st.queue, st.opt.DeliveryLimit))
		case out <- next:
			waiting[0] = order.Delivery{} // the array would keep the body
			waiting = waiting[1:]
		case <-st.enough:
			return
		case <-st.handedOver:
			return
		case <-st.done:
			return
		}
	}
}

// checkLiveness ends the connection when the broker stops answering. It hands shards over when the
// process has too many.
func (st *stream) checkLiveness() {
	tick := time.NewTicker(livenessEvery)
	defer tick.Stop()
	for {
		select {
		case <-st.done:
			return
		case <-tick.C:
		}
		alive, processes := st.alive()
		if !alive {
			st.conn.disconnect()
			return
		}
		if st.shares != nil {
			st.shares.balance(processes, time.Now())
		}
	}
}

// alive reports whether the broker answers, and how many processes consume the dead letters. An
// answer that there is no such queue counts too.
func (st *stream) alive() (alive bool, processes int) {
	err := st.conn.withTimeout(context.Background(), livenessTimeout, func() (err error) {
		processes, err = st.conn.countConsumers(deadName)
		return err
	})
	var closed *amqp.Error
	alive = err == nil ||
		errors.As(err, &closed) && closed.Server && !errors.Is(err, amqp.ErrClosed)
	return alive, processes
}

// Deliveries is closed when the connection has ended, when the broker has cancelled the consumer,
// and when the shard is handed over to another process. The user then calls Close and opens the
// shard again.
func (st *stream) Deliveries() <-chan order.Delivery { return st.out }

// Ack acknowledges the delivery and all before it. It does not wait for the broker. If the
// connection loses the ack, the broker delivers the messages again.
func (st *stream) Ack(tag uint64) error {
	st.acked.Store(tag)
	return wrap(st.ch.Ack(tag, true), "ack %s", st.queue)
}

// Close sends the acks in flight and closes the connection, which returns the unacknowledged
// messages to the queue. It returns within two seconds. Its error has the reason for which the
// broker ended the stream, if it did. A second call returns the same error.
//
// It does not cancel the consumer first. RabbitMQ 3.10 would then start the next consumer while the
// first one still has unacknowledged messages.
func (st *stream) Close() error { return st.close() }
