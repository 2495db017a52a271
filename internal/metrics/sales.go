package metrics

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flashsale.dev/seckill/internal/order/reconcile"
	"flashsale.dev/seckill/internal/seckill"
)

// maxLabelledSales bounds the sales that have gauges of their own. The newest have them, so that
// the number of series does not grow with the number of sales.
const maxLabelledSales = 50

// Sales exports the last sample of all sales. Before the first sample it exports nothing.
type Sales struct {
	last   atomic.Pointer[sample]
	gauges map[gauge]*prometheus.Desc
}

type sample struct {
	reconcile.Sample
	at time.Time
}

// gauge is a gauge's name without its prefix.
type gauge string

const (
	outboxEntries  gauge = "outbox_entries"
	outboxOldest   gauge = "outbox_oldest_seconds"
	pendingUnits   gauge = "pending_units"
	pendingOldest  gauge = "pending_oldest_seconds"
	salesByGate    gauge = "sales"
	ledgerGap      gauge = "ledger_difference_units"
	unbalanced     gauge = "ledger_unbalanced_sales"
	oversold       gauge = "oversold_units"
	deadWaiting    gauge = "dead_letters_waiting"
	memoryUsed     gauge = "redis_memory_used_bytes"
	memoryMax      gauge = "redis_memory_max_bytes"
	sampleTime     gauge = "sample_timestamp_seconds"
	sampleDuration gauge = "sample_duration_seconds"
	saleAvailable  gauge = "sale_available_units"
	salePending    gauge = "sale_pending_units"
	saleSold       gauge = "sale_sold_units"
	saleOpen       gauge = "sale_gate_open"
)

func (r *Registry) newSales() *Sales {
	s := &Sales{gauges: make(map[gauge]*prometheus.Desc)}
	add := func(name gauge, help string, labels ...string) {
		r.describe("gauge", string(name), help, labels)
		s.gauges[name] = prometheus.NewDesc(prefix+string(name), help, labels, nil)
	}
	add(outboxEntries, "Outbox entries that RabbitMQ has not confirmed, of all sales.")
	add(outboxOldest, "Age of the oldest outbox entry.")
	add(pendingUnits, "Units reserved and not known to be in MySQL, of all sales.")
	add(pendingOldest, "Age of the backlog: the longest time for which a reservation is pending.")
	add(salesByGate, "Sales by their gate in Redis; over: ended or closed.", "gate")
	add(ledgerGap, "Sum over the sales of |total - available - pending - sold| in Redis.")
	add(unbalanced, "Sales whose ledger is not balanced: a difference, or an order number that "+
		"only Redis or only MySQL has for more than 5 s.")
	add(oversold, "Units that MySQL has sold beyond the totals. Any value but 0 is a defect.")
	add(deadWaiting, "Dead letters that wait for an operator.")
	add(memoryUsed, "Memory that Redis uses.")
	add(memoryMax, "Memory that Redis may use; 0: no limit.")
	add(sampleTime, "Unix time of the sample that these gauges show.")
	add(sampleDuration, "Duration of taking the sample.")
	add(saleAvailable, "Units on sale, of the 50 newest sales.", "goods_id")
	add(salePending, "Units reserved and not known to be in MySQL, of the 50 newest sales.", "goods_id")
	add(saleSold, "Units sold, of the 50 newest sales.", "goods_id")
	add(saleOpen, "1 while the gate is open, of the 50 newest sales.", "goods_id")
	r.reg.MustRegister(s)
	return s
}

// Sampled is part of reconcile.Metrics.
func (s *Sales) Sampled(found reconcile.Sample) { s.last.Store(&sample{Sample: found, at: time.Now()}) }

// Describe implements prometheus.Collector.
func (s *Sales) Describe(to chan<- *prometheus.Desc) {
	for _, d := range s.gauges {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (s *Sales) Collect(to chan<- prometheus.Metric) {
	last := s.last.Load()
	if last == nil {
		return
	}
	export := func(name gauge, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(s.gauges[name], prometheus.GaugeValue, value, labels...)
	}
	for name, value := range sums(last.Sales) {
		export(name, value)
	}
	for gate, n := range countByGate(last.Sales) {
		export(salesByGate, float64(n), gate)
	}
	export(deadWaiting, float64(last.DeadLetters))
	export(memoryUsed, float64(last.Memory.Used))
	export(memoryMax, float64(last.Memory.Most))
	export(sampleTime, float64(last.at.UnixMilli())/1000)
	export(sampleDuration, last.Took.Seconds())
	for _, sale := range last.Sales[:min(maxLabelledSales, len(last.Sales))] {
		goods := strconv.FormatInt(sale.GoodsID, 10)
		export(saleAvailable, float64(sale.Ledger.Available), goods)
		export(salePending, float64(sale.Ledger.Pending), goods)
		export(saleSold, float64(sale.Ledger.Sold), goods)
		export(saleOpen, oneIf(sale.Gate == seckill.GateOpen), goods)
	}
}

// sums returns the gauges of all sales together.
func sums(sales []reconcile.SaleSample) map[gauge]float64 {
	all := map[gauge]float64{
		outboxEntries: 0, outboxOldest: 0, pendingUnits: 0, pendingOldest: 0,
		ledgerGap: 0, unbalanced: 0, oversold: 0,
	}
	for _, s := range sales {
		all[outboxEntries] += float64(s.Outbox)
		all[outboxOldest] = max(all[outboxOldest], s.OutboxAge.Seconds())
		all[pendingUnits] += float64(s.Ledger.Pending)
		all[pendingOldest] = max(all[pendingOldest], s.PendingAge.Seconds())
		if s.Accounted {
			all[ledgerGap] += float64(s.Difference())
			all[oversold] += float64(s.Oversold())
			all[unbalanced] += oneIf(!s.Ledger.Balanced)
		}
	}
	return all
}

// countByGate counts sales by the state of their gate. Every state is present, so that a query
// never lacks a series.
func countByGate(sales []reconcile.SaleSample) map[string]int {
	all := map[string]int{"over": 0, "open": 0, "missing": 0, "lease_lost": 0, "shut": 0}
	for _, s := range sales {
		if s.OnSale {
			all[gateName(s.Gate)]++
		} else {
			all["over"]++
		}
	}
	return all
}

func gateName(g seckill.GateState) string {
	switch g {
	case seckill.GateOpen:
		return "open"
	case seckill.GateMissing:
		return "missing"
	case seckill.GateLease:
		return "lease_lost"
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
