package loadgen

import (
	"net/http"
	"time"
)

// Plan describes a load: the buyers, their arrival and their behaviour. Exactly one of Users and
// Rate is above 0.
type Plan struct {
	Bases   []string // http://host:port of the APIs that share the buyers
	GoodsID string
	HTTP    *http.Client
	Token   func(buyerID int64) (string, error) // signs a buyer's token

	Buyers  int     // in all
	FirstID int64   // id of the first buyer, counted up
	Users   int     // closed loop: active buyers; the next starts when one finishes
	Rate    float64 // open loop: arrivals per second
	// Ramp is the time of linear growth from zero to Users or Rate.
	Ramp time.Duration
	// Spike buyers start together at StartAt, in addition to the loop.
	Spike   int
	StartAt time.Time // of the first buyers; now if zero
	// InFlight bounds the active buyers of the open loop. Waiting for a place counts as lag.
	InFlight int

	Impatient, Hostile float64 // shares of the buyers, 0 to 1; the rest are polite
	Seed               uint64  // of the buyers' kinds
	Quantity           int64   // units of each purchase; 1 if 0
	// Patience bounds a buyer's retries, and separately its polling; 30 s if 0.
	Patience time.Duration

	Every   time.Duration // the time between the points of the series; 500 ms if 0
	OnPoint func(Point)   // receives each point; may be nil
}

func (p Plan) withDefaults() Plan {
	p.Quantity, p.FirstID = max(1, p.Quantity), max(1, p.FirstID)
	p.Spike = min(p.Spike, p.Buyers)
	if p.Patience <= 0 {
		p.Patience = 30 * time.Second
	}
	if p.Every <= 0 {
		p.Every = 500 * time.Millisecond
	}
	if p.InFlight <= 0 {
		p.InFlight = max(20_000, p.Spike)
	}
	return p
}
