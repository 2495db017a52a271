package loadgen

import (
	"cmp"
	"net/http"
	"time"
)

// Plan describes a load: the buyers, their arrival and their behaviour. Exactly one of Users and
// Rate is above 0. The report contains the fields that have a name in JSON.
type Plan struct {
	Bases   []string                            `json:"addresses"` // APIs that share the buyers
	GoodsID string                              `json:"goodsId"`
	HTTP    *http.Client                        `json:"-"`
	Token   func(buyerID int64) (string, error) `json:"-"` // signs a buyer's token

	Buyers  int     `json:"buyers"`          // in all
	FirstID int64   `json:"-"`               // id of the first buyer, counted up
	Users   int     `json:"users,omitempty"` // closed loop: active buyers
	Rate    float64 `json:"rate,omitempty"`  // open loop: arrivals per second
	// Ramp is the time of linear growth from zero to Users or Rate.
	Ramp time.Duration `json:"-"`
	// Spike buyers start together at StartAt, in addition to the loop.
	Spike   int       `json:"spike"`
	StartAt time.Time `json:"-"` // of the first buyers; now if zero
	// InFlight bounds the active buyers of the open loop; 20,000 if 0. Waiting for a place counts
	// as lag.
	InFlight int `json:"-"`

	// Impatient and Hostile are shares of the buyers, 0 to 1; the rest are polite.
	Impatient float64 `json:"impatient"`
	Hostile   float64 `json:"hostile"`
	Room      *Room   `json:"room,omitempty"` // of a sale with a waiting room
	Seed      uint64  `json:"seed"`           // of the buyers' kinds
	Quantity  int64   `json:"quantity"`       // units of each purchase; 1 if 0
	// Patience bounds a buyer's retries, and separately its polling; 30 s if 0.
	Patience time.Duration `json:"-"`

	// Every is the time between the points of the series, at least 500 ms. If 0 an open loop takes
	// a 600th of its length.
	Every   time.Duration `json:"-"`
	OnPoint func(Point)   `json:"-"` // receives each point; may be nil
}

// Room describes the buyers of a waiting room by shares, 0 to 1; the rest buy and pay at once. Each
// buyer joins when it arrives, and waits until its turn or until the room is over.
type Room struct {
	Eager    float64 `json:"eager"`
	Leavers  float64 `json:"leavers"`
	Sleepers float64 `json:"sleepers"`
	Unpaid   float64 `json:"unpaid"`
	// Within bounds the time from a returned unit to the next admission.
	Within time.Duration `json:"-"`
}

// withDefaults fills in the zero fields. Tests and the demo set only the fields that they need;
// cmd/loadtest sets all from its flags.
func (p Plan) withDefaults() Plan {
	p.Quantity, p.FirstID = max(1, p.Quantity), max(1, p.FirstID)
	p.Spike = min(p.Spike, p.Buyers)
	p.Patience = cmp.Or(p.Patience, 30*time.Second)
	if p.Every == 0 && p.Rate > 0 {
		p.Every = seconds(float64(p.Buyers) / p.Rate / 600)
	}
	p.Every = max(p.Every, 500*time.Millisecond)
	p.InFlight = cmp.Or(p.InFlight, max(20_000, p.Spike))
	if p.Room != nil {
		p.InFlight = max(p.InFlight, p.Buyers) // all wait at the same time
	}
	return p
}
