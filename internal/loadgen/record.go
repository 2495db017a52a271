package loadgen

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/loadgen/buyer"
)

// The spans that are measured in addition to the calls.
const (
	SpanDecision buyer.Step = "decision" // from the planned start to the 202 or the refusal
	SpanWritten  buyer.Step = "written"  // from the 202 until the buyer read the written order
	SpanLag      buyer.Step = "lag"      // from the planned start to the actual one
)

// maxTime bounds the histograms; longer times count as this.
const maxTime = 2 * time.Minute

// histogram returns an empty histogram in µs. Three digits keep p99.9 within 0.1 %. Two suffice for
// the intervals, which are charts.
func histogram(digits int) *hdrhistogram.Histogram {
	return hdrhistogram.New(1, maxTime.Microseconds(), digits)
}

// recorder collects the measurements. One mutex suffices: each call holds it for less than 1 µs.
// With several locks the figures of one interval would disagree with each other.
type recorder struct {
	began time.Time

	mu        sync.Mutex
	steps     map[buyer.Step]*stepCount              // of the whole run
	intervals map[buyer.Step]*hdrhistogram.Histogram // of the current interval
	point     Point                                  // of the current interval
	points    []Point
	outcomes  map[Kind]map[buyer.Outcome]int
	holders   []Holder
	places    []Place
	breaches  []string
	arrivals  int
}

// stepCount collects the calls of a step. The API supplies the reasons, so the report lists an
// unexpected one too.
type stepCount struct {
	times   *hdrhistogram.Histogram // µs
	answers map[string]int64        // by reason, or "error: …"
	faults  int64                   // answers of 5xx
	errors  int64                   // no answer, or an unreadable one
}

func newRecorder(began time.Time) *recorder {
	return &recorder{
		began: began, steps: map[buyer.Step]*stepCount{},
		intervals: map[buyer.Step]*hdrhistogram.Histogram{},
		outcomes:  map[Kind]map[buyer.Outcome]int{Polite: {}, Impatient: {}, Hostile: {}},
	}
}

// addCall records a call.
func (r *recorder) addCall(c buyer.Call) {
	label := c.Answer.Reason
	if c.Err != nil {
		label = "error: " + errorClass(c.Answer, c.Err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.addTime(c.Step, c.Took)
	s.answers[label]++
	switch {
	case c.Err != nil:
		s.errors++
		r.point.Errors++
	case c.Answer.Status >= 500:
		s.faults++
		r.point.Faults++
	case c.Answer.Status == 429:
		r.point.Limited++
	}
}

// addTime adds a time to a step, in the run and in the interval. The caller holds the lock.
func (r *recorder) addTime(step buyer.Step, d time.Duration) *stepCount {
	s := r.steps[step]
	if s == nil {
		s = &stepCount{times: histogram(3), answers: map[string]int64{}}
		r.steps[step], r.intervals[step] = s, histogram(2)
	}
	us := min(max(d, 0), maxTime).Microseconds()
	_ = s.times.RecordValue(us) // the value is within the histogram's bounds
	_ = r.intervals[step].RecordValue(us)
	return s
}

// errorClass names the reason why a call has no answer: a timeout, or else the innermost error,
// because the texts of the others contain addresses and ports that differ in each call.
func errorClass(a apiclient.Answer, err error) string {
	if a.Status != 0 {
		return fmt.Sprintf("status %d with an unknown body", a.Status)
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return "timeout"
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err.Error()
}

// addArrival records a started buyer and its lag. The lag belongs to the generator: a large one
// makes all other figures useless.
func (r *recorder) addArrival(lag time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addTime(SpanLag, lag)
	r.arrivals++
	r.point.InFlight++
	r.point.Arrived++
}

// addAccepted records a buyer's first 202. The charts count it at once: the order may be written
// much later.
func (r *recorder) addAccepted() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.point.Won++
}

// addBuyer records a finished buyer. It keeps buyers with a 202 or an uncertain outcome. A run of a
// million buyers has few of these, so memory grows with the stock and not with the buyers.
func (r *recorder) addBuyer(kind Kind, t buyer.Result, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.Outcome = cmp.Or(t.Outcome, buyer.GaveUp) // empty if the last answer was unreadable
	r.countOutcome(kind, t.Outcome)
	if t.Place.Number == 0 { // a wait in a line is not the API's latency
		r.addTime(SpanDecision, t.DecisionTime)
	}
	if t.Outcome == buyer.Won && err == nil && t.Status != "queued" && kind == Polite &&
		t.WriteTime > 0 {
		r.addTime(SpanWritten, t.WriteTime)
	}
	if len(t.Accepted) > 0 || t.Uncertain {
		r.holders = append(r.holders, newHolder(t))
	}
	if t.Place.Number > 0 {
		r.places = append(r.places, Place{t.Place, t.BuyerID, t.Outcome, t.OrderSn})
	}
}

// The outcomes of hostile buyers.
const (
	allRefused buyer.Outcome = "all refused" // no call succeeded
	notRefused buyer.Outcome = "not refused" // a call succeeded
)

// mostBreaches bounds the memory that breaches take. One is enough to fail the run.
const mostBreaches = 20

// addHostile records a finished hostile buyer and its breaches.
func (r *recorder) addHostile(breaches []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	outcome := allRefused
	if len(breaches) > 0 {
		outcome = notRefused
	}
	r.countOutcome(Hostile, outcome)
	if len(r.breaches) < mostBreaches {
		r.breaches = append(r.breaches, breaches...)
	}
}

// countOutcome counts a finished buyer. The caller holds the lock.
func (r *recorder) countOutcome(kind Kind, o buyer.Outcome) {
	r.outcomes[kind][o]++
	r.point.InFlight--
	r.point.Done++
	switch o {
	case buyer.Won: // counted at its 202
	case buyer.SoldOut:
		r.point.SoldOut++
	default:
		r.point.Other++
	}
}
