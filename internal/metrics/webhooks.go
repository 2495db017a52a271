package metrics

import (
	"cmp"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"flashsale.dev/seckill/internal/webhook"
)

// Webhooks counts what a dispatcher sends.
type Webhooks struct {
	attempts map[webhook.Problem]prometheus.Counter
	dead     prometheus.Gauge
}

var _ webhook.Metrics = (*Webhooks)(nil)

func (r *Registry) newWebhooks() *Webhooks {
	count := r.counters("webhook_attempts_total",
		"Requests to webhooks by result: ok, or the problem.", "result")
	attempts := map[webhook.Problem]prometheus.Counter{}
	for _, p := range webhook.Problems() { // all export 0, so that rates see the first one
		attempts[p] = count.WithLabelValues(strings.ToLower(cmp.Or(string(p), "ok")))
	}
	return &Webhooks{
		attempts: attempts,
		dead: r.gauges("webhook_deliveries_dead", "Webhook deliveries that failed for a day and "+
			"that nobody has sent again, of the last week.").WithLabelValues(),
	}
}

// Attempted implements webhook.Metrics.
func (m *Webhooks) Attempted(p webhook.Problem) { m.attempts[p].Inc() }

// CountedDead implements webhook.Metrics.
func (m *Webhooks) CountedDead(n int64) { m.dead.Set(float64(n)) }
