package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Requests counts and times HTTP requests.
type Requests struct {
	count   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

// newRequests registers the metrics of HTTP requests.
func (r *Registry) newRequests() *Requests {
	return &Requests{
		count:   r.counters("http_requests_total", "Answers by the route's pattern and the contract's reason.", "route", "reason"),
		seconds: r.histograms("http_request_duration_seconds", "Time from request to answer; of event streams, until they end.", quick, "route"),
	}
}

// rushed are the reasons of the answers that come by the thousand: their counters are found beforehand.
var rushed = [...]string{
	"OK", "QUEUED", "SOLD_OUT", "RATE_LIMITED", "NOT_STARTED", "ENDED", "LIMIT_REACHED", "BAD_PATH", "UNAVAILABLE", "INTERNAL",
	"BAD_REQUEST", "UNAUTHENTICATED", "CONFLICT", "NOT_FOUND",
}

// Route gives what hears of the answers of one route.
func (q *Requests) Route(route string) func(reason string, took time.Duration) {
	counters := make(map[string]prometheus.Counter, len(rushed))
	for _, reason := range rushed {
		counters[reason] = q.count.WithLabelValues(route, reason)
	}
	seconds := q.seconds.WithLabelValues(route)
	return func(reason string, took time.Duration) {
		if c, found := counters[reason]; found {
			c.Inc()
		} else {
			q.count.WithLabelValues(route, reason).Inc()
		}
		seconds.Observe(took.Seconds())
	}
}
