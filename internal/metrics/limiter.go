package metrics

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"flashsale.dev/seckill/internal/ratelimit/gate"
)

// Limiter counts the rate limiter's decisions. An operator may add rules later, so the counters of
// a rule are made at its first decision.
type Limiter struct {
	count *prometheus.CounterVec
	mu    sync.Mutex
	rules atomic.Pointer[map[string][]prometheus.Counter] // by rule, then by event; replaced whole
}

func (r *Registry) newLimiter() *Limiter {
	l := &Limiter{count: r.counters("limiter_events_total",
		"Decisions of the rate limiter: allowed and denied add up to all; "+
			"the other events say how a decision was made.", "rule", "event")}
	l.rules.Store(&map[string][]prometheus.Counter{})
	return l
}

// Count counts an event of a rule. The rules' file bounds the number of rules.
func (l *Limiter) Count(rule string, event gate.Event) {
	counters, found := (*l.rules.Load())[rule]
	if !found {
		counters = l.add(rule)
	}
	counters[event].Inc()
}

// add makes the counters of a rule. Readers need no lock, because the map is replaced whole.
func (l *Limiter) add(rule string) []prometheus.Counter {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := maps.Clone(*l.rules.Load())
	if counters, found := all[rule]; found {
		return counters
	}
	for _, event := range gate.Events() {
		all[rule] = append(all[rule], l.count.WithLabelValues(rule, event.String()))
	}
	l.rules.Store(&all)
	return all[rule]
}
