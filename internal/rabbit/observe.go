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

// traceParentHeader is the header that W3C's Trace Context for AMQP names.
const traceParentHeader = "traceparent"

// headers are those of a message; nil where it is not followed.
func (o Options) headers(ctx context.Context) amqp.Table {
	if o.TraceParent == nil {
		return nil
	}
	if parent := o.TraceParent(ctx); parent != "" {
		return amqp.Table{traceParentHeader: parent}
	}
	return nil
}
