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

// Errors of one publish. The first two say that the message is in no queue; after the third it may be.
var (
	ErrReturned = errors.New("no queue took the message")
	ErrRefused  = errors.New("the broker refused the message")
	ErrCut      = errors.New("the connection ended before the broker confirmed: outcome unknown")
)

// lane is one channel in confirm mode.
//
// A returned message is confirmed too, after it was returned. amqp091-go hands a return to its listeners one after the other
// before it reads on, so two unbuffered ones make the order certain: between the first and the second the return is
// noted, and only then can the confirm come.
type lane struct {
	ch     *amqp.Channel
	closed chan *amqp.Error
	seq    atomic.Uint64

	mu       sync.Mutex
	returned map[string]string // message id → why
	late     []sent            // given up by their callers and still unconfirmed
}

// sent is one message under way.
type sent struct {
	id      string
	shard   int
	confirm *amqp.DeferredConfirmation
}

func openLane(c *amqp.Connection, onReturn func()) (*lane, error) {
	ch, err := c.Channel()
	if err != nil {
		return nil, fmt.Errorf("open channel: %w", err)
	}
	l := &lane{ch: ch, closed: make(chan *amqp.Error, 1), returned: make(map[string]string)}
	ch.NotifyClose(l.closed)
	go l.note(ch.NotifyReturn(make(chan amqp.Return)), ch.NotifyReturn(make(chan amqp.Return)), onReturn)
	if err := ch.Confirm(false); err != nil {
		return nil, fmt.Errorf("confirm mode: %w", err)
	}
	return l, nil
}

// note remembers returns until the channel ends.
func (l *lane) note(first, second <-chan amqp.Return, onReturn func()) {
	for r := range first {
		l.mu.Lock()
		l.returned[r.MessageId] = r.ReplyText
		l.mu.Unlock()
		onReturn()
		<-second
	}
}

// publish sends. Its errors mean that the message has not reached the broker: at most a part of it has.
func (l *lane) publish(shard int, body []byte, now time.Time, headers amqp.Table) (sent, error) {
	id := strconv.FormatUint(l.seq.Add(1), 36)
	confirm, err := l.ch.PublishWithDeferredConfirm(ordersName, strconv.Itoa(shard), true, false, amqp.Publishing{
		DeliveryMode: amqp.Persistent, ContentType: "application/json", MessageId: id, Timestamp: now, Headers: headers, Body: body,
	})
	if err != nil {
		return sent{}, fmt.Errorf("%w: %w", order.ErrQueueDown, err)
	}
	return sent{id: id, shard: shard, confirm: confirm}, nil
}

// wait returns what became of a message; settled is false where ctx ended first, and then the lane looks after it.
func (l *lane) wait(ctx context.Context, m sent) (settled bool, err error) {
	select {
	case <-m.confirm.Done():
		return true, l.outcome(m)
	case <-ctx.Done():
	}
	l.mu.Lock()
	l.late = append(l.late, m)
	l.mu.Unlock()
	return false, fmt.Errorf("wait for the confirm: %w", ctx.Err())
}

func (l *lane) outcome(m sent) error {
	l.mu.Lock()
	why, returned := l.returned[m.id]
	delete(l.returned, m.id)
	l.mu.Unlock()
	switch {
	case returned:
		return fmt.Errorf("%w: %s", ErrReturned, why)
	case m.confirm.Acked():
		return nil
	case l.ch.IsClosed(): // which nacks what is under way
		return ErrCut
	}
	return ErrRefused
}

// sweep hands on the outcomes of those that were confirmed late.
func (l *lane) sweep(settle func(shard int, outcome error)) {
	for _, m := range l.takeLate() {
		settle(m.shard, l.outcome(m))
	}
}

// takeLate removes those whose confirm has come from the late ones.
func (l *lane) takeLate() (done []sent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := l.late[:0]
	for _, m := range l.late {
		select {
		case <-m.confirm.Done():
			done = append(done, m)
		default:
			left = append(left, m)
		}
	}
	clear(l.late[len(left):])
	l.late = left
	return done
}
