package loadgen

import (
	"net/http"
	"time"
)

// Plan is a load: who comes, when, and what they are like. Exactly one of Users and Rate is above 0.
type Plan struct {
	Bases   []string // http://host:port of the APIs, among which the buyers are spread
	GoodsID string
	HTTP    *http.Client
	Token   func(buyerID int64) (string, error) // signs a buyer's token

	Buyers  int     // who come in all
	FirstID int64   // their ids go up from here
	Users   int     // closed loop: so many at once, each place taken by the next buyer as soon as one is done
	Rate    float64 // open loop: arrivals per second
	// Ramp is how long the loop takes from nobody to Users, or from no arrivals to Rate, evenly.
	Ramp time.Duration
	// Spike buyers come all at once at StartAt, before and beside the loop.
	Spike   int
	StartAt time.Time // when the first come; at once if zero
	// InFlight bounds the buyers on their way at once in the open loop; who has to wait for that is late, and counts so.
	InFlight int

	Impatient, Hostile float64 // shares of the buyers, 0 to 1; the rest are polite
	Seed               uint64  // of who is what
	Quantity           int64   // each asks for; 1 if 0
	// Patience is how long a buyer goes on when told to come again, and how long it looks at its order; 30 s if 0.
	Patience time.Duration

	Every time.Duration // the time between the points of the series; 500 ms if 0
	Watch func(Point)   // is told each point as it is made; may be nil
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
