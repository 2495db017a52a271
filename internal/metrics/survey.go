package metrics

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flashsale.dev/seckill/internal/order/reconcile"
	"flashsale.dev/seckill/internal/seckill"
)

// named is how many sales have gauges of their own, the newest: what has a label of goods must not grow with the shop.
const named = 50

// Survey shows the last survey. Before the first there is nothing to see.
type Survey struct {
	last   atomic.Pointer[seen]
	gauges map[gauge]*prometheus.Desc
}

var _ reconcile.SampleMetrics = (*Survey)(nil)

// seen is a survey and when it was made.
type seen struct {
	reconcile.Sample
	at time.Time
}

// gauge names a gauge without its prefix.
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
	memoryMost     gauge = "redis_memory_max_bytes"
	surveyTime     gauge = "survey_timestamp_seconds"
	surveyDuration gauge = "survey_duration_seconds"
	saleAvailable  gauge = "sale_available_units"
	salePending    gauge = "sale_pending_units"
	saleSold       gauge = "sale_sold_units"
	saleOpen       gauge = "sale_gate_open"
)

// newSurvey registers the gauges of how sales stand.
func (r *Registry) newSurvey() *Survey {
	s := &Survey{gauges: make(map[gauge]*prometheus.Desc)}
	add := func(name gauge, help string, labels ...string) {
		r.describe("gauge", string(name), help, labels)
		s.gauges[name] = prometheus.NewDesc(prefix+string(name), help, labels, nil)
	}
	add(outboxEntries, "Groups of reservations that RabbitMQ has not confirmed, of all sales.")
	add(outboxOldest, "Age of the oldest of them.")
	add(pendingUnits, "Units reserved and not known to be in MySQL, of all sales.")
	add(pendingOldest, "Age of the backlog: time since a moment before which nothing is pending, the longest of all sales.")
	add(salesByGate, "Sales that are looked after by their gate in Redis; over: ended or closed, whatever their gate.", "gate")
	add(ledgerGap, "Units that are in no place, or in two: |total - available - pending - sold| in Redis, summed over the sales.")
	add(unbalanced, "Sales whose ledger is not balanced: a difference, or an order number in one place only for more than 5 s.")
	add(oversold, "Units that MySQL has sold beyond the totals. Anything but 0 is a broken promise.")
	add(deadWaiting, "Dead letters that wait for an operator.")
	add(memoryUsed, "Memory that Redis uses.")
	add(memoryMost, "Memory that Redis may use; 0: no limit of its own.")
	add(surveyTime, "When these gauges were read, in Unix time.")
	add(surveyDuration, "How long reading them took.")
	add(saleAvailable, "Units on sale, of the 50 newest sales.", "goods_id")
	add(salePending, "Units reserved and not known to be in MySQL, of the 50 newest sales.", "goods_id")
	add(saleSold, "Units sold, of the 50 newest sales.", "goods_id")
	add(saleOpen, "1 where the gate is open, of the 50 newest sales.", "goods_id")
	r.reg.MustRegister(s)
	return s
}

// Surveyed is order.SampleMetrics's.
func (s *Survey) Sampled(found reconcile.Sample) { s.last.Store(&seen{Sample: found, at: time.Now()}) }

// Describe is prometheus.Collector's.
func (s *Survey) Describe(to chan<- *prometheus.Desc) {
	for _, d := range s.gauges {
		to <- d
	}
}

// Collect is prometheus.Collector's.
func (s *Survey) Collect(to chan<- prometheus.Metric) {
	last := s.last.Load()
	if last == nil {
		return
	}
	tell := func(name gauge, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(s.gauges[name], prometheus.GaugeValue, value, labels...)
	}
	for name, value := range sums(last.Sales) {
		tell(name, value)
	}
	for gate, n := range gates(last.Sales) {
		tell(salesByGate, float64(n), gate)
	}
	tell(deadWaiting, float64(last.DeadLetters))
	tell(memoryUsed, float64(last.Memory.Used))
	tell(memoryMost, float64(last.Memory.Most))
	tell(surveyTime, float64(last.at.UnixMilli())/1000)
	tell(surveyDuration, last.Took.Seconds())
	for _, sale := range last.Sales[:min(named, len(last.Sales))] {
		goods := strconv.FormatInt(sale.GoodsID, 10)
		tell(saleAvailable, float64(sale.Ledger.Available), goods)
		tell(salePending, float64(sale.Ledger.Pending), goods)
		tell(saleSold, float64(sale.Ledger.Sold), goods)
		tell(saleOpen, truth(sale.Gate == seckill.GateOpen), goods)
	}
}

// sums are the gauges of all sales together.
func sums(sales []reconcile.SaleSample) map[gauge]float64 {
	all := map[gauge]float64{
		outboxEntries: 0, outboxOldest: 0, pendingUnits: 0, pendingOldest: 0, ledgerGap: 0, unbalanced: 0, oversold: 0,
	}
	for _, s := range sales {
		all[outboxEntries] += float64(s.Outbox)
		all[outboxOldest] = max(all[outboxOldest], s.OutboxAge.Seconds())
		all[pendingUnits] += float64(s.Ledger.Pending)
		all[pendingOldest] = max(all[pendingOldest], s.PendingAge.Seconds())
		if s.Accounted {
			all[ledgerGap] += float64(s.Difference())
			all[oversold] += float64(s.Oversold())
			all[unbalanced] += truth(!s.Ledger.Balanced)
		}
	}
	return all
}

// gates counts sales by the state of their gate.
func gates(sales []reconcile.SaleSample) map[string]int {
	all := map[string]int{"over": 0}
	for _, g := range []seckill.GateState{seckill.GateOpen, seckill.GateMissing, seckill.GateShut, seckill.GateLease} {
		all[gateName(g)] = 0
	}
	for _, s := range sales {
		if !s.OnSale {
			all["over"]++
		} else {
			all[gateName(s.Gate)]++
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

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
