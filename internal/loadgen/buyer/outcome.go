package buyer

import (
	"net/http"
	"time"

	"flashsale.dev/seckill/internal/loadgen/apiclient"
)

// Outcome is how a buyer's try ended.
type Outcome string

// The ends of a try.
const (
	Won     Outcome = "won"      // 202: there is an order
	SoldOut Outcome = "sold out" // politely told that nothing is left
	Refused Outcome = "refused"  // any other refusal that is final (LIMIT_REACHED, ENDED)
	GaveUp  Outcome = "gave up"  // limited or unavailable for longer than the buyer had patience
)

// Result is what one buyer was told.
type Result struct {
	BuyerID          int64
	Outcome          Outcome
	Reason           string // of the last answer
	OrderSn          string // Won
	Status           string // Won: the order's status when the buyer stopped looking
	Quantity         int64
	Limited          int // how often the answer was 429
	ServerErrors     int // how often it was a 5xx other than 503
	Unavailable      int // how often it was 503
	NoRetryAfter     int // how often a 503 did not say when to come again
	ConnectionErrors int // how often the connection broke before the answer came
	NotStarted       int // how often it was NOT_STARTED, and the buyer asked again
	Paths            int // with how many random paths it tried to buy
	// Unsure is set where a try to buy had no certain end: an order may exist that the buyer was not told of.
	Uncertain bool
	// Accepted is every 202, of asking again too; Seen is each status of the order when it was first told.
	Accepted []Accepted
	Statuses []StatusChange
	Started  time.Time // of the first call, or when it was due
	// DecisionTime is the time from the first call to the 202 or the refusal; Written from there until the order was written.
	DecisionTime, WriteTime time.Duration

	due time.Time // when the first call was meant to be made; zero once it has been
}

// add takes over what another click at the same button was told.
func (t *Result) add(o Result) {
	t.Limited += o.Limited
	t.ServerErrors += o.ServerErrors
	t.Unavailable += o.Unavailable
	t.NoRetryAfter += o.NoRetryAfter
	t.ConnectionErrors += o.ConnectionErrors
	t.NotStarted += o.NotStarted
	t.Uncertain = t.Uncertain || o.Uncertain
	t.Accepted = append(t.Accepted, o.Accepted...)
}

// Accepted is one 202.
type Accepted struct {
	Path, OrderSn  string
	Sent, Received time.Time // when the call was made, and when the answer came
}

// StatusChange is what a look at an order said.
type StatusChange struct {
	Status string
	At     time.Time
}

// later counts the answers that are neither yes nor no, and tells whether to ask again.
func (t *Result) countRetryable(a apiclient.Answer) bool {
	switch {
	case a.Status == http.StatusTooManyRequests:
		t.Limited++
	case a.Status == http.StatusServiceUnavailable:
		t.Unavailable++
		if a.RetryAfter <= 0 {
			t.NoRetryAfter++
		}
	case a.Status >= 500:
		t.ServerErrors++
		return false
	default:
		return false
	}
	return true
}

func (t *Result) finish(a apiclient.Answer) {
	t.Reason = a.Reason
	switch {
	case a.Reason == "SOLD_OUT":
		t.Outcome = SoldOut
	case a.Status == 0 || a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable:
		t.Outcome = GaveUp
	default:
		t.Outcome = Refused
	}
}

func (t *Result) addStatus(status string) {
	if status != t.Status {
		t.Statuses = append(t.Statuses, StatusChange{Status: status, At: time.Now()})
	}
	t.Status = status
}
