package metrics

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flashsale.dev/seckill/internal/order/reconcile"
	"flashsale.dev/seckill/internal/seckill"
)

// maxLabelledSales bounds the sales that have gauges of their own. The newest have them, so that
// the number of series does not grow with the number of sales.
const maxLabelledSales = 50

// sampleLife is how long Sales exports a sample. The alert SeckillBlind fires earlier.
const sampleLife = 2 * time.Minute

// sampleTime is the gauge that the alert SeckillBlind reads. Sales exports it for an old sample
// too.
const sampleTime = "sample_timestamp_seconds"

// Sales exports the last sample of all sales. Before the first sample it exports nothing, because a
// 0 without a reading would look like a good state. It exports no figures of an old sample: alerts
// take the maximum over all consumers, so one that alone lost Redis would falsify it.
type Sales struct{ last atomic.Pointer[sample] }

type sample struct {
	reconcile.Sample
	at time.Time
}

// export receives one gauge; label is "" for a gauge without a label.
type export func(name, help string, value float64, label, labelValue string)

func (r *Registry) newSales() *Sales {
	empty := sample{Sample: reconcile.Sample{Sales: make([]reconcile.SaleSample, 1)}}
	empty.gauges(func(name, help string, _ float64, label, _ string) {
		r.describe("gauge", name, help, strings.Fields(label))
	})
	s := &Sales{}
	r.reg.MustRegister(s)
	return s
}

// Sampled is part of reconcile.Metrics. It stores the sample's time, because a scrape happens
// between two samples.
func (s *Sales) Sampled(found reconcile.Sample) {
	s.last.Store(&sample{Sample: found, at: time.Now()})
}

// Describe implements prometheus.Collector. It describes nothing: the first sample adds gauges, and
// Prometheus would reject those beyond a fixed list.
func (s *Sales) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (s *Sales) Collect(to chan<- prometheus.Metric) {
	last := s.last.Load()
	if last == nil {
		return
	}
	old := time.Since(last.at) > sampleLife
	last.gauges(func(name, help string, value float64, label, labelValue string) {
		if old && name != sampleTime {
			return
		}
		labels := prometheus.Labels{}
		if label != "" {
			labels[label] = labelValue
		}
		desc := prometheus.NewDesc(prefix+name, help, nil, labels)
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value)
	})
}

// gauges calls export for every gauge of the sample.
func (s sample) gauges(export export) {
	all := sums(s.Sales)
	one := func(name, help string, value float64) { export(name, help, value, "", "") }
	one("outbox_entries", "Outbox entries that RabbitMQ has not confirmed, of all sales.",
		all.outbox)
	one("outbox_oldest_seconds", "Age of the oldest outbox entry.", all.outboxAge)
	one("pending_units", "Units reserved and not known to be in MySQL, of all sales.", all.pending)
	one("pending_oldest_seconds",
		"Age of the backlog: how long reservations wait for MySQL, but for those that others overtook.",
		all.pendingAge)
	for gate, n := range countByGate(s.Sales) {
		export("sales", "Sales by their gate in Redis; over: ended or closed.", n, "gate", gate)
	}
	one("ledger_difference_units",
		"Sum over the sales of |total - available - pending - sold| in Redis.", all.difference)
	one("ledger_unbalanced_sales",
		"Sales whose ledger is not balanced: the equation fails, or the "+
			"ledger counts unsettled orders, stock moves not released or differing totals.",
		all.unbalanced)
	one("oversold_units",
		"Units that MySQL has sold beyond the totals. Any value but 0 is a defect.", all.oversold)
	one("dead_letters_waiting", "Dead letters that wait for an operator.", float64(s.DeadLetters))
	one("refunds_stopped", "Refunds that failed for days and wait for an operator.",
		float64(s.Refunds))
	one("refund_oldest_seconds", "For how long the oldest refund that is still tried has been due.",
		s.RefundAge.Seconds())
	one("parked_orders", "Late orders that wait for units.", float64(s.Parked))
	one("redis_memory_used_bytes", "Memory that Redis uses.", float64(s.Memory.Used))
	one("redis_memory_max_bytes", "Memory that Redis may use; 0: no limit.", float64(s.Memory.Most))
	one(sampleTime, "Unix time of the sample that these gauges show.",
		float64(s.at.UnixMilli())/1000)
	one("sample_duration_seconds", "Duration of taking the sample.", s.Took.Seconds())
	for _, sale := range s.Sales[:min(maxLabelledSales, len(s.Sales))] {
		goods := strconv.FormatInt(sale.GoodsID, 10)
		ofSale := func(name, help string, value float64) {
			export(name, help, value, "goods_id", goods)
		}
		l := sale.Ledger
		ofSale("sale_available_units", "Units on sale, of the 50 newest sales.",
			float64(l.Available))
		ofSale("sale_pending_units",
			"Units reserved and not known to be in MySQL, of the 50 newest sales.",
			float64(l.Pending))
		ofSale("sale_sold_units", "Units sold, of the 50 newest sales.", float64(l.Sold))
		ofSale("sale_gate_open", "1 while the gate is open, of the 50 newest sales.",
			oneIf(sale.Gate == seckill.GateOpen))
	}
}

// summed holds the sums, and the highest ages, of all sales.
type summed struct {
	outbox, outboxAge, pending, pendingAge, difference, unbalanced, oversold float64
}

// sums adds up all sales. Ledger sums skip sales that could not be read in both Redis and MySQL.
func sums(sales []reconcile.SaleSample) (all summed) {
	for _, s := range sales {
		all.outbox += float64(s.Outbox)
		all.outboxAge = max(all.outboxAge, s.OutboxAge.Seconds())
		all.pending += float64(s.Ledger.Pending)
		all.pendingAge = max(all.pendingAge, s.PendingAge.Seconds())
		if s.Accounted {
			all.difference += float64(s.Difference())
			all.oversold += float64(s.Oversold())
			all.unbalanced += oneIf(!s.Ledger.Balanced)
		}
	}
	return all
}

// countByGate counts sales by the state of their gate. Every state is present, so that a query
// never lacks a series.
func countByGate(sales []reconcile.SaleSample) map[string]float64 {
	all := map[string]float64{
		"over": 0, "open": 0, "missing": 0, "lease_lost": 0, "shut": 0,
		"not_renewed": 0,
	}
	for _, s := range sales {
		if s.OnSale {
			all[gateName(s.Gate)]++
		} else {
			all["over"]++
		}
	}
	return all
}

// gateName returns a state's label. The names are part of the interface; the numbers of the script
// are not.
func gateName(g seckill.GateState) string {
	switch g {
	case seckill.GateOpen:
		return "open"
	case seckill.GateMissing:
		return "missing"
	case seckill.GateLease:
		return "lease_lost"
	case seckill.GateExpired:
		return "not_renewed"
	default:
		return "shut"
	}
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
