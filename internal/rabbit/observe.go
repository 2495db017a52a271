package rabbit

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Observer hears of messages on their way to the broker, of each once or twice.
type Observer interface {
	// Sent hears of a message that was handed to the connection, and how long that took, with the wait for room.
	Sent(took time.Duration)
	// Confirmed hears what became of a message that was sent, and how long that took: nil where the broker keeps it,
	// ErrReturned, ErrRefused or ErrCut where not, or the caller's deadline.
	Confirmed(took time.Duration, err error)
}

// observe tells the observer, if there is one.
func (o Options) observe(tell func(Observer)) {
	if o.Observer != nil {
		tell(o.Observer)
	}
}

// markHeader carries a message's mark, under the name that W3C's Trace Context for AMQP gives it.
const markHeader = "traceparent"

// headers are those of a message; nil where it is not followed.
func (o Options) headers(ctx context.Context) amqp.Table {
	if o.Mark == nil {
		return nil
	}
	if mark := o.Mark(ctx); mark != "" {
		return amqp.Table{markHeader: mark}
	}
	return nil
}
