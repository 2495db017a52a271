package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Requests counts and times HTTP requests. The duration has no label reason, which would multiply
// its buckets by the number of reasons.
type Requests struct {
	count   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	fetches map[bool]prometheus.Counter // of the issuer, by success
}

func (r *Registry) newRequests() *Requests {
	fetches := r.counters("issuer_fetches_total",
		"Fetches of the OpenID Connect issuer's document "+
			"and keys by result: ok or failed. The last keys stay valid after a failure.", "result")
	return &Requests{
		fetches: map[bool]prometheus.Counter{
			true: fetches.WithLabelValues("ok"), false: fetches.WithLabelValues("failed"),
		},
		count: r.counters("http_requests_total",
			"Responses by the route's pattern and the contract's reason.", "route", "reason"),
		seconds: r.histograms("http_request_duration_seconds",
			"Time from request to response; event streams count until they end.",
			requestBuckets, "route"),
	}
}

// CountFetch counts a fetch of the issuer's document or keys.
func (r *Requests) CountFetch(ok bool) { r.fetches[ok].Inc() }

// frequentReasons are the reasons whose counters Route resolves in advance, because a sale sends
// thousands of such responses per second.
var frequentReasons = [...]string{
	"OK", "QUEUED", "SOLD_OUT", "RATE_LIMITED", "NOT_STARTED", "ENDED", "LIMIT_REACHED", "BAD_PATH",
	"UNAVAILABLE", "INTERNAL", "BAD_REQUEST", "UNAUTHENTICATED", "CONFLICT", "NOT_FOUND",
}

// Route returns the function that counts and times the responses of one route. The router calls it
// once per route, so a request looks up only its reason.
func (r *Requests) Route(route string) func(reason string, took time.Duration) {
	counters := make(map[string]prometheus.Counter, len(frequentReasons))
	for _, reason := range frequentReasons {
		counters[reason] = r.count.WithLabelValues(route, reason)
	}
	seconds := r.seconds.WithLabelValues(route)
	return func(reason string, took time.Duration) {
		if c, found := counters[reason]; found {
			c.Inc()
		} else {
			r.count.WithLabelValues(route, reason).Inc()
		}
		seconds.Observe(took.Seconds())
	}
}
