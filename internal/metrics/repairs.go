package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/order/reconcile"
)

// Repairs counts what relays, reconcilers and rebuilds do, and exports reconcilers' samples.
type Repairs struct {
	*Sales
	relayed, repaired, rebuilds, lost prometheus.Counter
	differences                       map[difference]prometheus.Counter
	shut                              prometheus.Observer
}

var _ reconcile.Metrics = (*Repairs)(nil)

// difference is a kind of difference between Redis and MySQL.
type difference string

const (
	unsettled   difference = "unsettled"
	unwritten   difference = "unwritten"
	notReleased difference = "not_released"
	totals      difference = "totals"
	holdings    difference = "holdings"
)

func (r *Registry) newRepairs() *Repairs {
	return &Repairs{
		relayed: r.counter("outbox_relayed_entries_total",
			"Outbox entries that an API left unpublished and the relay published."),
		differences: counterOf(r, "reconcile_differences_total",
			"Differences between Redis and MySQL by kind, counted in each round; the metrics "+
				"reference explains the kinds.",
			"difference", unsettled, unwritten, notReleased, totals, holdings),
		repaired: r.counter("reconcile_repaired_total",
			"Differences that the reconciler repaired, or began to repair."),
		rebuilds: r.counter("rebuilds_total", "Rebuilds that opened a sale in Redis again."),
		shut: r.histogram("rebuild_duration_seconds",
			"Time for which a rebuild kept its sale shut.", writeBuckets),
		lost: r.counter("rebuild_lost_orders_total",
			"Orders that a rebuild could not write in any form; each is a dead letter."),
		Sales: r.newSales(),
	}
}

// Relayed counts entries that the relay published. outbox.Publisher calls it.
func (m *Repairs) Relayed(entries int) { m.relayed.Add(float64(entries)) }

// Reconciled implements reconcile.Metrics. It counts found and repaired apart, because each round
// counts a difference again until it is repaired.
func (m *Repairs) Reconciled(a reconcile.Report) {
	m.repaired.Add(float64(a.Repaired))
	m.differences[unsettled].Add(float64(a.Found.Unsettled))
	m.differences[unwritten].Add(float64(a.Found.Unwritten))
	m.differences[notReleased].Add(float64(a.Found.Unreleased))
	m.differences[totals].Add(float64(a.Found.Totals))
	m.differences[holdings].Add(float64(a.Holdings))
}

// Rebuilt counts a rebuild that opened a sale again. rebuild.Rebuilder calls it. The rebuild worker
// repeats a failed rebuild, which is not counted.
func (m *Repairs) Rebuilt(r rebuild.Result) {
	m.rebuilds.Inc()
	m.shut.Observe(r.Shut.Seconds())
	m.lost.Add(float64(r.Lost))
}
