package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flashsale.dev/seckill/internal/rabbit"
)

// Queue counts and times messages to RabbitMQ.
type Queue struct {
	outcomes  map[publishOutcome]prometheus.Counter
	sent      prometheus.Histogram
	confirmed prometheus.Histogram
}

var _ rabbit.Metrics = (*Queue)(nil)

// publishOutcome is what became of a message.
type publishOutcome string

const (
	confirmed publishOutcome = "confirmed"
	returned  publishOutcome = "returned"
	refused   publishOutcome = "refused"
	cut       publishOutcome = "cut"
	late      publishOutcome = "late"
	failed    publishOutcome = "failed"
)

// newQueue registers the metrics of publishing.
func (r *Registry) newQueue() *Queue {
	return &Queue{
		outcomes: counterOf(r, "publishes_total", "Messages sent to RabbitMQ and what became of them; late: not confirmed within the deadline.", "outcome",
			confirmed, returned, refused, cut, late, failed),
		sent:      r.histogram("publish_duration_seconds", "Time until a message was handed to the connection, with the wait for room.", quick),
		confirmed: r.histogram("confirm_duration_seconds", "Time from handing over a message to what became of it.", quick),
	}
}

// Sent is rabbit.Metrics's.
func (q *Queue) Sent(took time.Duration) { q.sent.Observe(took.Seconds()) }

// Confirmed is rabbit.Metrics's.
func (q *Queue) Confirmed(took time.Duration, err error) {
	q.confirmed.Observe(took.Seconds())
	q.outcomes[outcomeOf(err)].Inc()
}

func outcomeOf(err error) publishOutcome {
	switch {
	case err == nil:
		return confirmed
	case errors.Is(err, rabbit.ErrReturned):
		return returned
	case errors.Is(err, rabbit.ErrNacked):
		return refused
	case errors.Is(err, rabbit.ErrUnconfirmed):
		return cut
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		return late
	default:
		return failed
	}
}
