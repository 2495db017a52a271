package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flashsale.dev/seckill/internal/rabbit"
)

// Publishing counts and times messages to RabbitMQ. Sending and confirming are timed apart: a slow
// network shows in the first, a slow broker in the second.
type Publishing struct {
	outcomes  map[publishOutcome]prometheus.Counter
	sent      prometheus.Observer
	confirmed prometheus.Observer
}

type publishOutcome string

const (
	confirmed    publishOutcome = "confirmed"
	returned     publishOutcome = "returned"
	nacked       publishOutcome = "nacked"
	disconnected publishOutcome = "disconnected"
	timedOut     publishOutcome = "timeout"
	failed       publishOutcome = "failed"
)

func (r *Registry) newPublishing() *Publishing {
	return &Publishing{
		outcomes: counterOf(r, "publishes_total",
			"Messages sent to RabbitMQ by outcome; timeout: no confirm within the deadline.",
			"outcome", confirmed, returned, nacked, disconnected, timedOut, failed),
		sent: r.histogram("publish_duration_seconds",
			"Time until the connection took a message, with the wait for room.", requestBuckets),
		confirmed: r.histogram("confirm_duration_seconds",
			"Time from sending a message to its outcome.", requestBuckets),
	}
}

// Outcome counts a message by its outcome; err is nil for a confirmed one. It is a rabbit.Outcome.
func (p *Publishing) Outcome(sending, confirming time.Duration, err error) {
	p.sent.Observe(sending.Seconds())
	p.confirmed.Observe(confirming.Seconds())
	p.outcomes[outcomeOf(err)].Inc()
}

// outcomeOf returns the label of an error. A lost connection needs another remedy than a missing
// queue.
func outcomeOf(err error) publishOutcome {
	switch {
	case err == nil:
		return confirmed
	case errors.Is(err, rabbit.ErrReturned):
		return returned
	case errors.Is(err, rabbit.ErrNacked):
		return nacked
	case errors.Is(err, rabbit.ErrUnconfirmed):
		return disconnected
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		return timedOut
	default:
		return failed
	}
}
