package seckill

import "time"

// Status is where a sale is in its life. It only goes forward.
type Status string

// The life of a sale.
const (
	Draft   Status = "draft"   // being prepared; buyers do not see it
	Exposed Status = "exposed" // shown to buyers, and sold within its window
	Closed  Status = "closed"  // stopped; what is queued is still written
)

// Phase is what an exposed sale looks like to a buyer at one moment.
type Phase string

// The phases of an exposed sale.
const (
	Upcoming      Phase = "upcoming"
	Ongoing       Phase = "ongoing"
	PhaseSoldOut  Phase = "sold_out"
	PhaseEnded    Phase = "ended"
	maxEpoch            = 1<<32 - 1
	defaultPerSec       = 1000
)

// Sale is one product, quantity and period that a merchant put up, as MySQL knows it.
type Sale struct {
	GoodsID          int64 // > 0
	MerchantID       int64 // > 0; who may change it
	Title            string
	Price            int64 // of one unit, in the currency's smallest unit
	Total            int64 // units put up, sold or not
	Stock            int64 // units that no active order holds, as MySQL has committed it
	Version          int64 // counts the changes of Stock; the compare-and-swap compares it
	Epoch            int64 // how often its state in Redis was built; 0 before the first time
	PerBuyerLimit    int64 // units one buyer may hold, queued, created and paid together
	MaxPerBuyerLimit int64 // the highest PerBuyerLimit it ever had: what the database itself enforces
	StartAt, EndAt   time.Time
	Rate             Rate
	Status           Status
	CreatedAt        time.Time
	UpdatedAt        time.Time
	Retired          bool // over for good: Redis may know nothing of it
}

// Rate is the limiter of a sale's random paths; the names are those of every rate in the contract.
type Rate struct {
	Algorithm        string  `json:"algorithm"`
	PermitsPerSecond float64 `json:"permitsPerSecond"` // > 0
	MaxBurstSeconds  float64 `json:"maxBurstSeconds"`  // seconds of permits that may be saved up
	MaxWaitMillis    int64   `json:"maxWaitMillis"`    // how long a caller may be made to wait, in ms
}

// DefaultRate is the rate of a sale that does not set its own.
func DefaultRate() Rate {
	return Rate{Algorithm: "reserve", PermitsPerSecond: defaultPerSec, MaxBurstSeconds: 1, MaxWaitMillis: 1000}
}

// PhaseAt tells the phase at a moment, with so many units available. The window is [StartAt, EndAt).
func (s Sale) PhaseAt(now time.Time, available int64) Phase {
	switch {
	case s.Status == Closed || !now.Before(s.EndAt):
		return PhaseEnded
	case now.Before(s.StartAt):
		return Upcoming
	case available <= 0:
		return PhaseSoldOut
	default:
		return Ongoing
	}
}

// Refusal says why the sale takes nobody at a moment, or nil where it does. A sale that is sold out
// before it starts is not a thing: the window is looked at first.
func (s Sale) CheckSelling(now time.Time, available int64) error {
	switch s.PhaseAt(now, available) {
	case Upcoming:
		e := NewError(NotStarted, "the sale has not started")
		e.Data = map[string]any{"startAt": s.StartAt}
		return e
	case PhaseEnded:
		return NewError(Ended, "the sale is over")
	case PhaseSoldOut:
		return NewSoldOut(0)
	default:
		return nil
	}
}

func NewSoldOut(available int64) error {
	e := NewError(SoldOut, "sold out")
	e.Data = map[string]any{"available": available}
	return e
}
