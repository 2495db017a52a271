// Package metrics keeps a program's metrics for Prometheus, all named seckill_ and in base units, and is what the rooms of
// the house tell of themselves: it has the observers that they ask for, so that none of them knows Prometheus. It is
// apart from obs so that a program that does without metrics need not build the client library.
//
// What is counted while buyers rush is found before the first of them comes: counting looks up no labels. No metric has
// a label of buyers or orders, and only a few gauges of the newest sales have one of goods. Every metric is described
// where it is made, and docs/metrics.md is written from those descriptions.
//
// Safe for concurrent use. It imports client_golang, and the packages whose observers it has.
package metrics

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Registry is one program's metrics, with those of the Go runtime and of the process.
type Registry struct {
	reg     *prometheus.Registry
	metrics []Metric
}

// Metric describes one metric.
type Metric struct {
	Name, Kind string // Kind: counter, gauge or histogram
	Labels     []string
	Help       string
}

// New makes a registry of one's own: nothing global is touched. version is the program's.
func New(version string) *Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r := &Registry{reg: reg}
	r.gauges("build_info", "Always 1; the label says which version of the program runs.", "version").WithLabelValues(version).Set(1)
	return r
}

// Metrics lists what has been registered, but for the Go runtime's and the process' own.
func (r *Registry) Metrics() []Metric { return r.metrics }

// Handler answers /metrics.
func (r *Registry) Handler() http.Handler {
	return promhttp.HandlerFor(r.reg, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

const prefix = "seckill_"

// add describes a metric and registers what collects it. A name that is taken is a programming error and panics.
func (r *Registry) add(kind, name, help string, labels []string, c prometheus.Collector) {
	r.describe(kind, name, help, labels)
	r.reg.MustRegister(c)
}

func (r *Registry) describe(kind, name, help string, labels []string) {
	r.metrics = append(r.metrics, Metric{Name: prefix + name, Kind: kind, Labels: labels, Help: help})
}

func (r *Registry) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	r.add("counter", name, help, labels, c)
	return c
}

func (r *Registry) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + name, Help: help})
	r.add("counter", name, help, nil, c)
	return c
}

// counterOf makes a counter for each value of one label, so that each is there, at 0, before it is first needed.
func counterOf[V ~string](r *Registry, name, help, label string, values ...V) map[V]prometheus.Counter {
	vec, all := r.counters(name, help, label), make(map[V]prometheus.Counter, len(values))
	for _, v := range values {
		all[v] = vec.WithLabelValues(strings.ToLower(string(v)))
	}
	return all
}

func (r *Registry) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels)
	r.add("gauge", name, help, labels, g)
	return g
}

func (r *Registry) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets}, labels)
	r.add("histogram", name, help, labels, h)
	return h
}

func (r *Registry) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets})
	r.add("histogram", name, help, nil, h)
	return h
}

// Buckets of times in seconds: of what a buyer waits for, and of what may wait for a backlog.
var (
	quick = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	slow  = []float64{.05, .1, .25, .5, 1, 2, 5, 10, 30, 60, 120, 300}
)

// sizes are buckets of how many travel together: a group has at most 256 buyers, a batch 500 orders and the last message's.
var sizes = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}
