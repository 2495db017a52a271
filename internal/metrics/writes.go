package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/orderwriter"
)

// Writes counts and times the transactions that write orders to MySQL. Each reason has its counter
// from the start, so that an alert fires at the first dead letter.
type Writes struct {
	outcomes map[writeOutcome]prometheus.Counter
	retries  map[orderwriter.RetryCause]prometheus.Counter
	dead     map[order.FailureReason]prometheus.Counter
	size     prometheus.Observer
	seconds  prometheus.Observer
}

var _ orderwriter.Metrics = (*Writes)(nil)

type writeOutcome string

const (
	writtenCreated  writeOutcome = "created"
	writtenFailed   writeOutcome = "failed"
	writtenExisting writeOutcome = "existing"
)

func (r *Registry) newWrites() *Writes {
	return &Writes{
		outcomes: counterOf(r, "orders_written_total",
			"Orders in committed transactions; existing: MySQL had the order already.",
			"outcome", writtenCreated, writtenFailed, writtenExisting),
		retries: counterOf(r, "write_retries_total",
			"Transactions that were retried; cas: the compare-and-swap on the stock failed; "+
				"adopt: orders of an older epoch; database: another error of MySQL.",
			"cause", orderwriter.RetrySwap, orderwriter.RetryAdopt, orderwriter.RetryDatabase),
		dead: counterOf(r, "dead_letters_total",
			"Orders and messages that could not be written and became dead letters.", "reason",
			order.FailureReasons()...),
		size: r.histogram("write_batch_size", "Orders in one committed transaction.", sizeBuckets),
		seconds: r.histogram("write_duration_seconds",
			"Duration of one transaction, from its first attempt to its commit.", writeBuckets),
	}
}

// Wrote implements orderwriter.Metrics. The size counts every order of the transaction, because all
// of them share its cost.
func (w *Writes) Wrote(out order.Outcome, took time.Duration) {
	w.size.Observe(float64(len(out.Created) + len(out.Failed) + len(out.Existing)))
	w.seconds.Observe(took.Seconds())
	w.outcomes[writtenCreated].Add(float64(len(out.Created)))
	w.outcomes[writtenFailed].Add(float64(len(out.Failed)))
	w.outcomes[writtenExisting].Add(float64(len(out.Existing)))
	for _, reason := range out.Failed {
		w.DeadLettered(reason)
	}
}

// Retried implements orderwriter.Metrics.
func (w *Writes) Retried(cause orderwriter.RetryCause) { w.retries[cause].Inc() }

// DeadLettered implements orderwriter.Metrics. It skips a reason of a newer release, so that
// unknown text never becomes a label.
func (w *Writes) DeadLettered(reason order.FailureReason) {
	if c, known := w.dead[reason]; known {
		c.Inc()
	}
}
