package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"flashsale.dev/seckill/internal/obs/prom"
	"flashsale.dev/seckill/internal/ratelimit"
)

// metrics is what a node tells Prometheus of requests and of the limiter.
type metrics struct {
	*prom.Requests
	limiter *prometheus.CounterVec
}

// newMetrics registers, besides the requests' own,
//
//	seckill_limiter_events_total{rule, event}    decisions by rule, and how they came about
func newMetrics(r *prom.Registry) metrics {
	m := metrics{Requests: r.Requests(), limiter: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "seckill_limiter_events_total", Help: "Decisions of the rate limiter by rule, and how they came about.",
	}, []string{"rule", "event"})}
	r.Register(m.limiter)
	return m
}

// Count is ratelimit.Meter's.
func (m metrics) Count(rule string, event ratelimit.Event) {
	m.limiter.WithLabelValues(rule, event.String()).Inc()
}
