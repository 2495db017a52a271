package metrics

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flashsale.dev/seckill/internal/order/purchase"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
)

// Reservations counts and times calls of the reserve script.
type Reservations struct {
	verdicts    [len(verdictNames)]prometheus.Counter
	shut, error prometheus.Counter
	size        prometheus.Observer
	seconds     prometheus.Observer
}

var _ purchase.Metrics = (*Reservations)(nil)

// verdictNames are the label values of the reserve script's verdicts, by code.
var verdictNames = [reservation.NumVerdicts]string{
	reservation.Taken: "taken", reservation.Repeated: "repeated",
	reservation.WrongPath: "wrong_path", reservation.TooEarly: "too_early",
	reservation.TooLate: "too_late", reservation.OverLimit: "over_limit",
	reservation.TooFew: "too_few", reservation.Malformed: "malformed",
	reservation.NotAdmitted: "not_admitted",
}

func (r *Registry) newReservations() *Reservations {
	count := r.counters("reservations_total",
		"Reservations by the reserve script's verdict; gate: the sale is shut in Redis; "+
			"error: Redis did not answer.", "outcome")
	v := &Reservations{
		shut: count.WithLabelValues("gate"), error: count.WithLabelValues("error"),
		size: r.histogram("reserve_batch_size",
			"Reservations in one call of the reserve script.", sizeBuckets),
		seconds: r.histogram("reserve_duration_seconds",
			"Duration of one call of the reserve script.", requestBuckets),
	}
	for code, name := range verdictNames {
		v.verdicts[code] = count.WithLabelValues(name)
	}
	return v
}

// Reserved implements purchase.Metrics. A call that failed counts each of its reservations, since
// all their buyers got the same answer.
func (r *Reservations) Reserved(
	size int, verdicts []reservation.Verdict, took time.Duration, err error,
) {
	r.size.Observe(float64(size))
	r.seconds.Observe(took.Seconds())
	if err != nil {
		if _, gate := errors.AsType[*seckill.GateError](err); gate {
			r.shut.Add(float64(size))
		} else {
			r.error.Add(float64(size))
		}
		return
	}
	// Counting by code first takes one atomic addition per verdict instead of one per buyer.
	var counts [len(verdictNames)]int
	for _, verdict := range verdicts {
		counts[verdict.Code]++
	}
	for code, n := range counts {
		if n > 0 {
			r.verdicts[code].Add(float64(n))
		}
	}
}
