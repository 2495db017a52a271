package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"flashsale.dev/seckill/internal/order/outbox"
	"flashsale.dev/seckill/internal/order/rebuild"
	"flashsale.dev/seckill/internal/order/reconcile"
)

// Mender counts what is done for promises that went astray.
type Mender struct {
	relayed, mended, rebuilds, lost prometheus.Counter
	differences                     map[difference]prometheus.Counter
	shut                            prometheus.Histogram
}

var (
	_ outbox.Metrics    = (*Mender)(nil)
	_ reconcile.Metrics = (*Mender)(nil)
	_ rebuild.Metrics   = (*Mender)(nil)
)

// difference is in what Redis and MySQL differ.
type difference string

const (
	unsettled difference = "unsettled"
	unwritten difference = "unwritten"
	notGiven  difference = "not_given"
	totals    difference = "totals"
)

// newMender registers the metrics of the relay, the audit and rebuilds.
func (r *Registry) newMender() *Mender {
	return &Mender{
		relayed: r.counter("relayed_entries_total", "Outbox entries that their API left behind and the relay published."),
		differences: counterOf(r, "audit_differences_total",
			"Differences between Redis and MySQL, counted anew in each round of an audit; unsettled: written and still pending; unwritten: pending for over a minute; not_given: units that Redis has not got back; totals: with nothing under way.",
			"difference", unsettled, unwritten, notGiven, totals),
		mended:   r.counter("audit_mended_total", "Differences that audits mended, or began to."),
		rebuilds: r.counter("rebuilds_total", "Rebuilds that opened a sale in Redis again."),
		shut:     r.histogram("rebuild_duration_seconds", "Time for which a rebuild kept its sale shut.", slow),
		lost:     r.counter("rebuild_lost_orders_total", "Orders that a rebuild could write in no form; each is a dead letter."),
	}
}

// Relayed is order.Metrics's.
func (m *Mender) Relayed(entries int) { m.relayed.Add(float64(entries)) }

// Audited is order.Metrics's.
func (m *Mender) Audited(a reconcile.Report) {
	m.mended.Add(float64(a.Repaired))
	m.differences[unsettled].Add(float64(a.Found.Unsettled))
	m.differences[unwritten].Add(float64(a.Found.Unwritten))
	m.differences[notGiven].Add(float64(a.Found.Unreleased))
	m.differences[totals].Add(float64(a.Found.Totals))
}

// Rebuilt is order.Metrics's.
func (m *Mender) Rebuilt(r rebuild.Result) {
	m.rebuilds.Inc()
	m.shut.Observe(r.Shut.Seconds())
	m.lost.Add(float64(r.Lost))
}
