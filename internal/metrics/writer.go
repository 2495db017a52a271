package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/orderwriter"
)

// Writer counts and times what is written to MySQL.
type Writer struct {
	outcomes map[writeOutcome]prometheus.Counter
	retries  map[orderwriter.RetryCause]prometheus.Counter
	dead     map[order.FailureReason]prometheus.Counter
	orders   prometheus.Histogram
	seconds  prometheus.Histogram
}

var _ orderwriter.Metrics = (*Writer)(nil)

// writeOutcome is what became of an order in a batch.
type writeOutcome string

const (
	wroteCreated writeOutcome = "created"
	wroteFailed  writeOutcome = "failed"
	wroteBefore  writeOutcome = "known"
)

// newWriter registers the metrics of writing orders.
func (r *Registry) newWriter() *Writer {
	return &Writer{
		outcomes: counterOf(r, "orders_written_total", "Orders in committed transactions; known: they were there before.", "outcome",
			wroteCreated, wroteFailed, wroteBefore),
		retries: counterOf(r, "write_retries_total", "Transactions that were lost and tried again; cas: the compare-and-swap on the stock missed; adopt: orders of an older epoch; database: anything else of MySQL's.",
			"cause", orderwriter.RetrySwap, orderwriter.RetryAdopt, orderwriter.RetryDatabase),
		dead: counterOf(r, "dead_letters_total", "Orders and messages that could not be written and became dead letters.", "reason",
			order.FailedOversold, order.FailedOverLimit, order.FailedMalformed, order.FailedUnwritten, order.FailedLost, order.FailedNoSale),
		orders:  r.histogram("batch_orders", "Orders in one committed transaction.", sizes),
		seconds: r.histogram("batch_duration_seconds", "Time of one transaction from its first try to its commit.", slow),
	}
}

// Wrote is order.Metrics's.
func (w *Writer) Wrote(out order.Outcome, took time.Duration) {
	w.orders.Observe(float64(len(out.Created) + len(out.Failed) + len(out.Existing)))
	w.seconds.Observe(took.Seconds())
	w.outcomes[wroteCreated].Add(float64(len(out.Created)))
	w.outcomes[wroteFailed].Add(float64(len(out.Failed)))
	w.outcomes[wroteBefore].Add(float64(len(out.Existing)))
	for _, reason := range out.Failed {
		w.DeadLettered(reason)
	}
}

// Retried is order.Metrics's.
func (w *Writer) Retried(cause orderwriter.RetryCause) { w.retries[cause].Inc() }

// Buried is order.Metrics's.
func (w *Writer) DeadLettered(reason order.FailureReason) {
	if c, known := w.dead[reason]; known {
		c.Inc()
	}
}
