package webhook

import (
	"errors"
	"time"

	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/seckill"
)

// The bounds of endpoints and of their fields, and the defaults of MaxBatch and MaxPerSecond.
const (
	maxURL           = 2000 // bytes
	MaxBatch         = 500  // events in one request
	defaultBatch     = 100  // events in one request
	MaxPerSecond     = 100  // requests
	defaultPerSecond = 10   // requests
	MaxEndpoints     = 20   // of one owner
	secretBytes      = 32
)

const (
	// SecretOverlap is how long a replaced secret signs too.
	SecretOverlap = 24 * time.Hour
	// deadAfter is how long a delivery is repeated before it is dead.
	deadAfter = 24 * time.Hour
	// disableAfter is how long an endpoint may fail before a dead delivery disables it.
	disableAfter = 5 * 24 * time.Hour
	// pauseAfterDeath is the time from a dead delivery to the first attempt of the next one.
	pauseAfterDeath = time.Minute
	// firstPause and maxPause bound the pauses between the attempts of a delivery.
	firstPause, maxPause = 5 * time.Second, time.Hour
)

// Errors of look-ups.
var (
	ErrNoSuchEndpoint = errors.New("no such webhook endpoint")
	ErrNoSuchDelivery = errors.New("no such webhook delivery")
	// ErrLeaseLost means that another worker serves the endpoint by now, or that its owner has
	// changed or deleted it.
	ErrLeaseLost = errors.New("the lease of the webhook endpoint is lost")
)

// Endpoint is a URL that receives its owner's events, with the position up to which it has them.
type Endpoint struct {
	ID       string
	OwnerID  string
	AllSales bool // the owner is an operator: the events of all sales; else of the owner's sales
	URL      string
	Types    []event.Type // empty: all
	MaxBatch int64        // events in one request
	// MaxPerSecond bounds the requests of one second.
	MaxPerSecond   int64
	Enabled        bool
	Secret         string   // sealed
	OldSecrets     []string // sealed, the newest first; they sign too until OldSecretUntil
	OldSecretUntil time.Time
	CreatedAt      time.Time
	UpdatedAt      time.Time
	// Position is the last event that was delivered or whose delivery is dead.
	Position int64
	DueAt    time.Time // when a dispatcher may serve it next
	Lease    string    // of the dispatcher that serves it; random
	// FailingSince is the time of the first failure since the last success; zero if there is none.
	FailingSince time.Time
	Retries      int64 // dead deliveries that the owner wants to be sent again
}

// rotate replaces the secret. For SecretOverlap the replaced secret and the oldest one that still
// signs sign too. The receiver may have only the oldest, if the answers with the later ones got
// lost.
func (e *Endpoint) rotate(sealed string, now time.Time) {
	old := []string{e.Secret}
	if n := len(e.OldSecrets); n > 0 && now.Before(e.OldSecretUntil) {
		old = append(old, e.OldSecrets[n-1])
	}
	e.Secret, e.OldSecrets, e.OldSecretUntil = sealed, old, now.Add(SecretOverlap)
}

// mayManage reports whether an actor may see and change the endpoint. One of all sales is an
// operator's, even if a merchant has the same id.
func (e Endpoint) mayManage(by seckill.Actor) bool {
	return by.Role == seckill.Operator ||
		by.Role == seckill.Merchant && by.ID == e.OwnerID && !e.AllSales
}

// filter selects the endpoint's events with positions in (after, to]; with to 0, all above after.
func (e Endpoint) filter(types []event.Type, after, to int64) event.Filter {
	f := event.Filter{MerchantID: e.OwnerID, Types: types, After: after, To: to}
	if e.AllSales {
		f.MerchantID = ""
	}
	return f
}

// State is the state of a delivery.
type State string

// The states of a delivery.
const (
	Pending   State = "pending" // to be sent, or sent again
	Delivered State = "delivered"
	Dead      State = "dead" // failed for too long; can be sent again on demand
)

// Problem is why an attempt failed. The endpoint's owner sees it, so it reveals nothing of a
// private network.
type Problem string

// The problems of attempts.
const (
	NoProblem      Problem = ""
	BadStatus      Problem = "STATUS"   // the receiver's status is not 2xx
	Redirected     Problem = "REDIRECT" // redirects are not followed
	TimedOut       Problem = "TIMEOUT"
	PrivateAddress Problem = "PRIVATE_ADDRESS"
	BadTLS         Problem = "TLS"
	NotConnected   Problem = "CONNECTION" // also a name that does not resolve
	BadSecret      Problem = "SECRET"     // the secret was sealed with a key that is not here
	EventsGone     Problem = "EVENTS_DELETED"
)

// Problems returns all values, NoProblem first.
func Problems() []Problem {
	return []Problem{
		NoProblem, BadStatus, Redirected, TimedOut, PrivateAddress, BadTLS, NotConnected, BadSecret,
		EventsGone,
	}
}

// Delivery is one batch of events for an endpoint.
type Delivery struct {
	ID         string // a UUIDv7; the webhook-id of every attempt
	EndpointID string
	After, To  int64        // it has the endpoint's events with positions in (After, To]
	Types      []event.Type // the endpoint's filter when the delivery was made
	Events     int64        // number of events
	State      State
	Attempts   int64
	Retried    bool // it was dead, and its owner demanded one more attempt
	Status     int  // of the last attempt's response; 0: none
	Problem    Problem
	CreatedAt  time.Time
	LastAt     time.Time // of the last attempt
	NextAt     time.Time // of the next attempt
	EndedAt    time.Time // when it was delivered or dead
}
