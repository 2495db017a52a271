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
)

// Result is the answers of one buyer's purchase, counted and in parts kept.
type Result struct {
	BuyerID          int64
	Outcome          Outcome
	Reason           string // of the last answer
	OrderSn          string // Won
	Status           string // Won: the order's status when polling ended
	Quantity         int64
	ServerErrors     int // answers of 5xx other than 503
	Unavailable      int // answers of 503
	NoRetryAfter     int // answers of 503 without Retry-After
	ConnectionErrors int // calls without a readable answer
	Paths            int // random paths that the buyer received
	// Uncertain: a purchase failed without a definite answer, so an unreported order may exist.
	Uncertain bool
	// Accepted lists every 202, repeats included; Statuses each first sight of a status.
	Accepted []Accepted
	Statuses []StatusChange
	Started  time.Time // the due time, or the first call
	// DecisionTime runs from the start to the 202 or the refusal, WriteTime from there until the
	// buyer read a status other than queued.
	DecisionTime, WriteTime time.Duration

	due time.Time // of the first call; zero once that was made
}

// errorCount counts the answers after which the outcome of a call is unknown.
func (t *Result) errorCount() int { return t.ConnectionErrors + t.Unavailable + t.ServerErrors }

// add merges the counts of a parallel request.
func (t *Result) add(o Result) {
	t.ServerErrors += o.ServerErrors
	t.Unavailable += o.Unavailable
	t.NoRetryAfter += o.NoRetryAfter
	t.ConnectionErrors += o.ConnectionErrors
	t.Uncertain = t.Uncertain || o.Uncertain
	t.Accepted = append(t.Accepted, o.Accepted...)
}

// Accepted is one 202.
type Accepted struct {
	Path, OrderSn  string
	Sent, Received time.Time // the call and its answer
}

// StatusChange is a status of the order and the time of its first sight.
type StatusChange struct {
	Status string
	At     time.Time
}

// countRetryable counts 5xx answers. It reports whether the buyer may retry the call:
// 429 and 503 are retried, another 5xx is final.
func (t *Result) countRetryable(a apiclient.Answer) bool {
	switch {
	case a.Status == http.StatusServiceUnavailable:
		t.Unavailable++
		if a.RetryAfter <= 0 {
			t.NoRetryAfter++
		}
	case a.Status >= 500:
		t.ServerErrors++
	}
	return mayRetry(a.Status)
}

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

// addStatus records a status, and its time if it differs from the one before. The sequence shows
// whether a status ever went backwards.
func (t *Result) addStatus(status string) {
	if status != t.Status {
		t.Statuses = append(t.Statuses, StatusChange{Status: status, At: time.Now()})
	}
	t.Status = status
}
