package buyer

import (
	"net/http"
	"time"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
)

// Outcome is the end of a purchase.
type Outcome string

// The outcomes.
const (
	Won     Outcome = "won"      // 202: there is an order
	SoldOut Outcome = "sold out" // SOLD_OUT
	Refused Outcome = "refused"  // any other final refusal, such as LIMIT_REACHED or ENDED
	GaveUp  Outcome = "gave up"  // 429, 503 or no answer until the buyer's patience ended
	Left    Outcome = "left"     // left the line when its turn had come
	Missed  Outcome = "missed"   // its turn ended before it bought
)

// Result is what one buyer's purchase came to: its outcome and the answers that a verdict needs.
type Result struct {
	BuyerID  int64
	Outcome  Outcome
	Reason   string // of the last answer
	OrderSn  string // Won
	Status   string // Won: the order's status when polling ended
	Quantity int64
	Paths    int // random paths that the buyer received
	// Uncertain: a purchase failed without a definite answer, so an unreported order may exist.
	Uncertain bool
	Accepted  []Accepted // every 202, repeats included
	Statuses  []string   // of the order, in the order read, without immediate repeats
	Place     Place      // in the line; zero without one
	Started   time.Time  // the due time, or the first call
	// DecisionTime runs from the start to the 202 or the refusal, WriteTime from there until the
	// buyer read a status other than queued.
	DecisionTime, WriteTime time.Duration

	due      time.Time // of the first call; zero once that was made
	ticket   string    // of the place in the line
	until    time.Time // the end of the turn, in the API's last answer
	failures int       // calls whose outcome is unknown: no answer, or one of 5xx
}

// add merges a parallel request.
func (t *Result) add(o Result) {
	t.failures += o.failures
	t.Uncertain = t.Uncertain || o.Uncertain
	t.Accepted = append(t.Accepted, o.Accepted...)
}

// Accepted is one 202.
type Accepted struct {
	Path, OrderSn  string
	Sent, Received time.Time // the call and its answer
}

// mayRetry reports whether the buyer may retry a call: 429 and 503 are retried, another 5xx is
// final.
func mayRetry(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// finish derives the outcome from the last answer. A report keeps the buyer's decision to give up
// apart from the API's SOLD_OUT.
func (t *Result) finish(a apiclient.Answer) {
	t.Reason, t.Outcome = a.Reason, Refused
	switch {
	case a.Reason == "SOLD_OUT":
		t.Outcome = SoldOut
	case a.Status == 0 || mayRetry(a.Status):
		t.Outcome = GaveUp
	}
}

// AddStatus records a status. The sequence of different statuses shows whether one ever went
// backwards.
func (t *Result) AddStatus(status string) {
	if status != t.Status {
		t.Statuses = append(t.Statuses, status)
	}
	t.Status = status
}
