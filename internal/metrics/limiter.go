package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"flashsale.dev/seckill/internal/ratelimit/gate"
)

// Limiter counts the rate limiter's decisions. An operator may add rules later, so the counters of
// a rule are made at its first decision.
type Limiter struct {
	count *prometheus.CounterVec
	rules sync.Map // []prometheus.Counter by event, by rule
}

func (r *Registry) newLimiter() *Limiter {
	return &Limiter{count: r.counters("limiter_events_total",
		"Decisions of the rate limiter: allowed and denied add up to all; "+
			"the other events say how a decision was made.", "rule", "event")}
}

// Count counts an event of a rule. The rules' file bounds the number of rules.
func (l *Limiter) Count(rule string, event gate.Event) {
	counters, found := l.rules.Load(rule)
	if !found {
		counters, _ = l.rules.LoadOrStore(rule, l.countersOf(rule))
	}
	counters.([]prometheus.Counter)[event].Inc()
}

// countersOf returns the counters of a rule. Repeated calls return the same counters.
func (l *Limiter) countersOf(rule string) (all []prometheus.Counter) {
	for _, event := range gate.Events() {
		all = append(all, l.count.WithLabelValues(rule, event.String()))
	}
	return all
}
