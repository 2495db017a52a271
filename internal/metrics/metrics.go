// Package metrics exports a program's metrics to Prometheus. The project's own names begin with
// seckill_; client_golang's collectors add go_*, process_* and go_sql_*. All use base units. The
// package implements the Metrics interfaces of the other packages, so that only it imports
// client_golang.
//
// Counters of frequent events are looked up before the sale begins, so that counting resolves no
// labels. No metric has a label of buyers or orders; a few gauges of the newest sales have a label
// of goods. docs/reference/metrics.md is generated from the descriptions given here.
//
// All types are safe for concurrent use.
package metrics

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Registry holds one program's metrics, with those of the Go runtime and of the process. Each
// program and each test has one of its own, because a global one would refuse the second
// registration.
type Registry struct {
	reg          *prometheus.Registry
	descriptions []description
}

// description documents one metric, for the generated reference.
type description struct {
	name, kind string // kind: counter, gauge or histogram
	labels     []string
	help       string
}

// newRegistry makes a registry of its own; it touches nothing global. version is the program's.
func newRegistry(version string) *Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r := &Registry{reg: reg}
	r.gauges("build_info", "Always 1; the label is the version of the program.", "version").
		WithLabelValues(version).Set(1)
	return r
}

// Handler serves /metrics. OpenMetrics adds exemplars and the units of names.
func (r *Registry) Handler() http.Handler {
	return promhttp.HandlerFor(r.reg, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

const prefix = "seckill_"

// add describes a metric and registers its collector. It panics if the name is taken, because
// that is a programming error.
func (r *Registry) add(kind, name, help string, labels []string, c prometheus.Collector) {
	r.describe(kind, name, help, labels)
	r.reg.MustRegister(c)
}

// describe adds a metric to the generated reference, once for all of its label values.
func (r *Registry) describe(kind, name, help string, labels []string) {
	added := description{prefix + name, kind, labels, help}
	if n := len(r.descriptions); n == 0 || r.descriptions[n-1].name != added.name {
		r.descriptions = append(r.descriptions, added)
	}
}

// counters makes counters with labels. They export nothing until the first use of a label value.
func (r *Registry) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	r.add("counter", name, help, labels, c)
	return c
}

// counter makes a counter that exports 0 from the start.
func (r *Registry) counter(name, help string) prometheus.Counter {
	return r.counters(name, help).WithLabelValues()
}

// counterOf makes a counter for each value of one label. Every counter exports 0 from the start,
// so that rates see the first increment.
func counterOf[V ~string](
	r *Registry, name, help, label string, values ...V,
) map[V]prometheus.Counter {
	vec, all := r.counters(name, help, label), make(map[V]prometheus.Counter, len(values))
	for _, v := range values {
		all[v] = vec.WithLabelValues(strings.ToLower(string(v)))
	}
	return all
}

// gauges makes gauges with labels.
func (r *Registry) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels)
	r.add("gauge", name, help, labels, g)
	return g
}

// histograms makes histograms with classic buckets, because dashboards and alerts outside of this
// repository use them.
func (r *Registry) histograms(
	name, help string, buckets []float64, labels ...string,
) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(
		prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets}, labels)
	r.add("histogram", name, help, labels, h)
	return h
}

// histogram makes a histogram without labels.
func (r *Registry) histogram(name, help string, buckets []float64) prometheus.Observer {
	return r.histograms(name, help, buckets).WithLabelValues()
}

// Histogram buckets: seconds that a buyer waits, seconds of background writes, and batch sizes. A
// reservation call has at most 256 items, a transaction about 500.
var (
	requestBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	writeBuckets   = []float64{
		.0025, .005, .01, .025, .05, .1, .25, .5, 1, 2, 5, 10, 30, 60, 120, 300,
	}
	sizeBuckets = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}
)
