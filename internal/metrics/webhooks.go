package metrics

import (
	"cmp"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"flashsale.dev/seckill/internal/webhook"
)

// Webhooks counts what a dispatcher sends.
type Webhooks struct {
	attempts *prometheus.CounterVec
	dead     prometheus.Gauge
}

var _ webhook.Metrics = (*Webhooks)(nil)

func (r *Registry) newWebhooks() *Webhooks {
	return &Webhooks{
		attempts: r.counters("webhook_attempts_total",
			"Requests to webhooks by result: ok, or the problem.", "result"),
		dead: r.gauges("webhook_deliveries_dead", "Webhook deliveries that failed for a day and "+
			"that nobody has sent again, of the last week.").WithLabelValues(),
	}
}

// Attempted implements webhook.Metrics.
func (m *Webhooks) Attempted(p webhook.Problem) {
	m.attempts.WithLabelValues(strings.ToLower(cmp.Or(string(p), "ok"))).Inc()
}

// CountedDead implements webhook.Metrics.
func (m *Webhooks) CountedDead(n int64) { m.dead.Set(float64(n)) }
