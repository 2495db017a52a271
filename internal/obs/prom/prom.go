// Package prom keeps a program's metrics for Prometheus, all named seckill_. It is apart from obs so that a program
// that does without metrics need not build the client library.
//
// Safe for concurrent use. It imports client_golang and nothing of the project.
package prom

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Registry is one program's metrics, with those of the Go runtime and of the process.
type Registry struct{ reg *prometheus.Registry }

// New makes a registry of one's own: nothing global is touched.
func New() *Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return &Registry{reg: reg}
}

// Register adds metrics of other parts; a name that is taken is a programming error and panics.
func (r *Registry) Register(all ...prometheus.Collector) { r.reg.MustRegister(all...) }

// Handler answers /metrics.
func (r *Registry) Handler() http.Handler {
	return promhttp.HandlerFor(r.reg, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// Requests counts and times HTTP requests.
type Requests struct {
	count   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

// Requests registers the metrics of HTTP requests:
//
//	seckill_http_requests_total{route, reason}         answers, by the route's pattern and the contract's reason
//	seckill_http_request_duration_seconds{route}       from the first byte read to the last handed over
func (r *Registry) Requests() *Requests {
	q := &Requests{
		count: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "seckill_http_requests_total", Help: "Answers by route and reason.",
		}, []string{"route", "reason"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "seckill_http_request_duration_seconds", Help: "Time from request to answer, by route.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route"}),
	}
	r.Register(q.count, q.seconds)
	return q
}

// Observe hears of one answer.
func (q *Requests) Observe(route, reason string, took time.Duration) {
	q.count.WithLabelValues(route, reason).Inc()
	q.seconds.WithLabelValues(route).Observe(took.Seconds())
}
