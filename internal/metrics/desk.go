package metrics

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flashsale.dev/seckill/internal/order/purchase"
	"flashsale.dev/seckill/internal/seckill"
)

// Desk counts reservations.
type Desk struct {
	verdicts    [len(verdictNames)]prometheus.Counter
	shut, error prometheus.Counter
	buyers      prometheus.Histogram
	seconds     prometheus.Histogram
}

var _ purchase.Metrics = (*Desk)(nil)

// verdictNames are the labels of what the reserve script says, by its code.
var verdictNames = [seckill.NumVerdicts]string{
	seckill.Taken: "taken", seckill.Repeated: "repeated", seckill.WrongPath: "wrong_path", seckill.TooEarly: "too_early",
	seckill.TooLate: "too_late", seckill.OverLimit: "over_limit", seckill.TooFew: "too_few", seckill.Malformed: "malformed",
}

// newDesk registers the metrics of reservations.
func (r *Registry) newDesk() *Desk {
	count := r.counters("reservations_total", "What buyers with a path were told by Redis; gate: the sale was shut; error: Redis did not answer.", "outcome")
	d := &Desk{
		shut: count.WithLabelValues("gate"), error: count.WithLabelValues("error"),
		buyers:  r.histogram("reserve_group_buyers", "Buyers who travelled together in one call of the reserve script.", sizes),
		seconds: r.histogram("reserve_duration_seconds", "Time of one call of the reserve script.", quick),
	}
	for code, name := range verdictNames {
		d.verdicts[code] = count.WithLabelValues(name)
	}
	return d
}

// Reserved is order.Metrics's.
func (d *Desk) Reserved(buyers int, verdicts []seckill.Verdict, took time.Duration, err error) {
	d.buyers.Observe(float64(buyers))
	d.seconds.Observe(took.Seconds())
	if err != nil {
		if _, gate := errors.AsType[*seckill.GateError](err); gate {
			d.shut.Add(float64(buyers))
		} else {
			d.error.Add(float64(buyers))
		}
		return
	}
	var told [len(verdictNames)]int
	for _, v := range verdicts {
		told[v.Code]++
	}
	for code, n := range told {
		if n > 0 {
			d.verdicts[code].Add(float64(n))
		}
	}
}
