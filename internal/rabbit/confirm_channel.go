package rabbit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"flashsale.dev/seckill/internal/order"
)

// Errors of one publish. After the first two the message is in no queue; after the third it may be.
var (
	ErrReturned    = errors.New("the broker returned the message: no queue is bound")
	ErrNacked      = errors.New("the broker nacked the message")
	ErrUnconfirmed = errors.New("the connection ended before the confirm: outcome unknown")
)

// confirmChannel is a channel in confirm mode.
//
// RabbitMQ confirms a returned message too, after the return. amqp091-go delivers a return to one
// listener after the other before it reads the next frame. Two unbuffered listeners therefore fix
// the order: recordReturns stores the return between the two, before the confirm can arrive. The
// library abandons a listener after 5 s, as where the process was stopped. The next return then
// begins with the first listener again.
type confirmChannel struct {
	ch     *amqp.Channel
	closed chan *amqp.Error
	seq    atomic.Uint64

	mu        sync.Mutex
	returned  map[string]string // reason by message id
	abandoned []unconfirmed     // messages whose callers no longer wait
}

// unconfirmed is a sent message.
type unconfirmed struct {
	id      string
	shard   int
	confirm *amqp.DeferredConfirmation
}

// openConfirmChannel opens a channel that signals onReturn after each returned message. It
// registers the listeners before the first message, because the library drops a return without a
// listener.
func openConfirmChannel(c *connection, onReturn chan<- struct{}) (*confirmChannel, error) {
	ch, err := c.channel()
	if err != nil {
		return nil, err
	}
	cc := &confirmChannel{
		ch: ch, closed: make(chan *amqp.Error, 1), returned: make(map[string]string),
	}
	ch.NotifyClose(cc.closed)
	first := ch.NotifyReturn(make(chan amqp.Return))
	go cc.recordReturns(first, ch.NotifyReturn(make(chan amqp.Return)), onReturn)
	return cc, wrap(ch.Confirm(false), "confirm mode")
}

// recordReturns stores what first receives, until the channel ends. It waits for both listeners at
// once: waiting for a delivery to second that the library has given up would miss the next return.
// A return of which only second got a copy is lost; the republisher publishes its orders later.
func (cc *confirmChannel) recordReturns(
	first, second <-chan amqp.Return, onReturn chan<- struct{},
) {
	for {
		select {
		case r, open := <-first:
			if !open {
				return
			}
			cc.mu.Lock()
			cc.returned[r.MessageId] = r.ReplyText
			cc.mu.Unlock()
			signal(onReturn)
		case _, open := <-second:
			if !open {
				second = nil // the library closes first too
			}
		}
	}
}

// publish sends a message. After an error the broker has not received the complete message.
func (cc *confirmChannel) publish(
	shard int, body []byte, now time.Time, headers amqp.Table,
) (unconfirmed, error) {
	id := strconv.FormatUint(cc.seq.Add(1), 36)
	message := amqp.Publishing{
		DeliveryMode: amqp.Persistent, ContentType: "application/json", MessageId: id,
		Timestamp: now, Headers: headers, Body: body,
	}
	confirm, err := cc.ch.PublishWithDeferredConfirm(
		ordersName, strconv.Itoa(shard), true, false, message)
	if err != nil {
		return unconfirmed{}, fmt.Errorf("%w: %w", order.ErrQueueDown, err)
	}
	return unconfirmed{id: id, shard: shard, confirm: confirm}, nil
}

// wait returns the outcome of a message. If ctx ends first, settled is false and the channel keeps
// the message for takeAbandoned.
func (cc *confirmChannel) wait(ctx context.Context, m unconfirmed) (settled bool, err error) {
	select {
	case <-m.confirm.Done():
		return true, cc.outcome(m)
	case <-ctx.Done():
	}
	cc.mu.Lock()
	cc.abandoned = append(cc.abandoned, m)
	cc.mu.Unlock()
	return false, fmt.Errorf("wait for the confirm: %w", ctx.Err())
}

// outcome returns the outcome of a confirmed message and deletes its recorded return.
func (cc *confirmChannel) outcome(m unconfirmed) error {
	cc.mu.Lock()
	reason, returned := cc.returned[m.id]
	delete(cc.returned, m.id)
	cc.mu.Unlock()
	switch {
	case returned:
		return fmt.Errorf("%w: %s", ErrReturned, reason)
	case m.confirm.Acked():
		return nil
	case cc.ch.IsClosed(): // the library then nacks the messages in flight
		return ErrUnconfirmed
	}
	return ErrNacked
}

// takeAbandoned removes and returns the abandoned messages that the broker has confirmed by now.
func (cc *confirmChannel) takeAbandoned() (confirmed []unconfirmed) {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	left := cc.abandoned[:0]
	for _, m := range cc.abandoned {
		select {
		case <-m.confirm.Done():
			confirmed = append(confirmed, m)
		default:
			left = append(left, m)
		}
	}
	clear(cc.abandoned[len(left):])
	cc.abandoned = left
	return confirmed
}
