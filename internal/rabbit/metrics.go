package rabbit

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Metrics counts and times published messages. Many goroutines call it.
type Metrics interface {
	// Sent reports a message that the connection took, after a wait for room among those in flight.
	Sent(took time.Duration)
	// Confirmed reports the outcome of a sent message: nil, ErrReturned, ErrNacked, ErrUnconfirmed
	// or the error of the caller's context.
	Confirmed(took time.Duration, err error)
}

// report calls the metrics, if there are any.
func (o Options) report(call func(Metrics)) {
	if o.Metrics != nil {
		call(o.Metrics)
	}
}

// traceParentHeader is the header that W3C's Trace Context for AMQP names.
const traceParentHeader = "traceparent"

// headers returns a message's headers; nil if its purchase is not traced.
func (o Options) headers(ctx context.Context) amqp.Table {
	if o.TraceParent == nil {
		return nil
	}
	if parent := o.TraceParent(ctx); parent != "" {
		return amqp.Table{traceParentHeader: parent}
	}
	return nil
}
