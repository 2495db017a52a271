package loadgen

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
	"flashsale.dev/seckill/internal/loadgen/buyer"
)

// The spans that are measured beside the calls.
const (
	SpanWay     buyer.Step = "way"     // from the moment a buyer was due to its 202 or its refusal
	SpanWritten buyer.Step = "written" // from the 202 until the buyer saw the order in MySQL
	SpanLag     buyer.Step = "lag"     // from the moment a buyer was due until the generator let it begin
)

// longest is what the histograms can tell; what took longer counts as this.
const longest = 2 * time.Minute

func histogram(digits int) *hdrhistogram.Histogram {
	return hdrhistogram.New(1, longest.Microseconds(), digits)
}

// recorder counts. One lock serves: it is held for some hundred nanoseconds of a call's 20 µs.
type recorder struct {
	began time.Time

	mu       sync.Mutex
	steps    map[buyer.Step]*stepCount
	window   window
	points   []Point
	outcomes map[Kind]map[buyer.Outcome]int
	kept     []Kept
	breaches []string
	breached int
	onWay    int
	came     int
}

// stepCount is what became of a step's calls.
type stepCount struct {
	times   *hdrhistogram.Histogram // µs
	answers map[string]int64        // by reason, or "error: …"
	faults  int64                   // answers of 5xx
	errors  int64                   // no answer at all, or none that could be read
}

func newRecorder() *recorder {
	return &recorder{steps: map[buyer.Step]*stepCount{}, window: newWindow(), outcomes: map[Kind]map[buyer.Outcome]int{}}
}

// saw takes note of a call.
func (r *recorder) saw(c buyer.Call) {
	said := c.Answer.Reason
	if c.Err != nil {
		said = "error: " + class(c.Answer, c.Err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.took(c.Step, c.Took)
	s.answers[said]++
	switch {
	case c.Err != nil:
		s.errors++
		r.window.point.Errors++
	case c.Answer.Status >= 500:
		s.faults++
		r.window.point.Faults++
	case c.Answer.Status == 429:
		r.window.point.Limited++
	}
}

// took adds a time to a step, in the whole and in the window. The lock is held.
func (r *recorder) took(step buyer.Step, d time.Duration) *stepCount {
	s := r.steps[step]
	if s == nil {
		s = &stepCount{times: histogram(3), answers: map[string]int64{}}
		r.steps[step] = s
	}
	us := min(max(d, 0), longest).Microseconds()
	_ = s.times.RecordValue(us) // it is within the bounds
	r.window.took(step, us)
	return s
}

// class names what kept an answer from coming.
func class(a apiclient.Answer, err error) string {
	switch {
	case a.Status != 0:
		return fmt.Sprintf("status %d of no known shape", a.Status)
	case buyer.TimedOut(err):
		return "timeout"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection broke"
	case errors.Is(err, buyer.ErrRemote):
		return "not this machine"
	default:
		return "other"
	}
}

func (r *recorder) arrived(lag time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took(SpanLag, lag)
	r.came++
	r.onWay++
	r.window.point.Arrived++
}

// won takes note of a buyer's first 202.
func (r *recorder) won() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.window.point.Won++
}

// departed takes note of how a buyer ended, and keeps who holds a promise or may hold one.
func (r *recorder) departed(kind Kind, t buyer.Told, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.Outcome == "" { // an answer that made no sense
		t.Outcome = buyer.GaveUp
	}
	r.ended(kind, t.Outcome)
	r.took(SpanWay, t.Bought)
	if t.Outcome == buyer.Won && err == nil && t.Status != "queued" && kind == Polite {
		r.took(SpanWritten, t.Written)
	}
	if len(t.Heard) > 0 || t.Unsure {
		r.kept = append(r.kept, keep(t))
	}
}

// robbed takes note of a thief's end.
func (r *recorder) robbed(breaches []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended(Hostile, turnedAway)
	r.breached += len(breaches)
	if len(r.breaches) < mostBreaches {
		r.breaches = append(r.breaches, breaches...)
	}
}

// turnedAway is how a thief is to end.
const turnedAway buyer.Outcome = "turned away"

// mostBreaches is how many are kept word for word.
const mostBreaches = 20

// ended counts. The lock is held.
func (r *recorder) ended(kind Kind, o buyer.Outcome) {
	if r.outcomes[kind] == nil {
		r.outcomes[kind] = map[buyer.Outcome]int{}
	}
	r.outcomes[kind][o]++
	r.onWay--
	r.window.ended(o)
}
