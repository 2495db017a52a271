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

// Told is what one buyer was told.
type Told struct {
	BuyerID  int64
	Outcome  Outcome
	Reason   string // of the last answer
	OrderSn  string // Won
	Status   string // Won: the order's status when the buyer stopped looking
	Quantity int64
	Limited  int // how often the answer was 429
	Faults   int // how often it was a 5xx other than 503
	Busy     int // how often it was 503
	Unsaid   int // how often a 503 did not say when to come again
	Broken   int // how often the connection broke before the answer came
	Early    int // how often it was NOT_STARTED, and the buyer asked again
	Paths    int // with how many random paths it tried to buy
	// Unsure is set where a try to buy had no certain end: an order may exist that the buyer was not told of.
	Unsure bool
	// Heard is every 202, of asking again too; Seen is each status of the order when it was first told.
	Heard []Heard
	Seen  []Seen
	Began time.Time // of the first call, or when it was due
	// Bought is the time from the first call to the 202 or the refusal; Written from there until the order was written.
	Bought, Written time.Duration

	due time.Time // when the first call was meant to be made; zero once it has been
}

// add takes over what another click at the same button was told.
func (t *Told) add(o Told) {
	t.Limited += o.Limited
	t.Faults += o.Faults
	t.Busy += o.Busy
	t.Unsaid += o.Unsaid
	t.Broken += o.Broken
	t.Early += o.Early
	t.Unsure = t.Unsure || o.Unsure
	t.Heard = append(t.Heard, o.Heard...)
}

// Heard is one 202.
type Heard struct {
	Path, OrderSn string
	Asked, At     time.Time // when the call was made, and when the answer came
}

// Seen is what a look at an order said.
type Seen struct {
	Status string
	At     time.Time
}

// later counts the answers that are neither yes nor no, and tells whether to ask again.
func (t *Told) later(a apiclient.Answer) bool {
	switch {
	case a.Status == http.StatusTooManyRequests:
		t.Limited++
	case a.Status == http.StatusServiceUnavailable:
		t.Busy++
		if a.RetryAfter <= 0 {
			t.Unsaid++
		}
	case a.Status >= 500:
		t.Faults++
		return false
	default:
		return false
	}
	return true
}

func (t *Told) end(a apiclient.Answer) {
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

func (t *Told) see(status string) {
	if status != t.Status {
		t.Seen = append(t.Seen, Seen{Status: status, At: time.Now()})
	}
	t.Status = status
}
