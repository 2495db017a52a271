package seckill

import (
	"time"

	"flashsale.dev/seckill/internal/apierror"
)

// Status is the state of a sale. It only advances: draft, exposed, closed.
type Status string

// The states of a sale.
const (
	Draft   Status = "draft"   // in preparation; buyers do not see it
	Exposed Status = "exposed" // visible to buyers, and sold within its window
	Closed  Status = "closed"  // stopped; queued orders are still written
)

// Phase is the state of an exposed sale for buyers at one moment.
type Phase string

// The phases of an exposed sale.
const (
	Upcoming     Phase = "upcoming"
	Ongoing      Phase = "ongoing"
	PhaseSoldOut Phase = "sold_out"
	PhaseEnded   Phase = "ended"
)

// Admission is how buyers of a sale get random paths.
type Admission string

// The ways of admission.
const (
	ByRate        Admission = "rate"        // the sale's rate limits the random paths
	ByWaitingRoom Admission = "waitingRoom" // buyers join a line, which knows the stock
)

// AccessCode is which access codes buyers of a sale need.
type AccessCode string

// The kinds of access codes.
const (
	NoCodes     AccessCode = "none"
	SharedCodes AccessCode = "shared" // each serves every buyer
	SingleCodes AccessCode = "single" // each serves the first buyer who presents it
)

// Required reports whether buyers need a code. An empty kind is NoCodes.
func (k AccessCode) Required() bool { return k == SharedCodes || k == SingleCodes }

// Sale is one product that a merchant sells in a period, as MySQL has it.
type Sale struct {
	GoodsID          int64  // > 0
	MerchantID       string // who may change it
	Title            string
	Price            int64 // of one unit, in the currency's smallest unit
	Total            int64 // units offered, sold or not
	Stock            int64 // units that no active order holds
	Version          int64 // number of changes of the row; Redis keeps the fields of the highest
	Epoch            int64 // how often its state in Redis was built
	PerBuyerLimit    int64 // units of queued, created and paid orders per buyer
	MaxPerBuyerLimit int64 // the highest PerBuyerLimit so far; MySQL enforces it
	StartAt, EndAt   time.Time
	Rate             Rate
	Admission        Admission
	AccessCode       AccessCode
	Status           Status
	CreatedAt        time.Time
	UpdatedAt        time.Time
	Retired          bool // ended and removed from Redis
	Details          Details
}

// Rate is the rate limit of a sale's random paths. The contract names the fields.
type Rate struct {
	Algorithm        string  `json:"algorithm"`
	PermitsPerSecond float64 `json:"permitsPerSecond"` // > 0
	MaxBurstSeconds  float64 `json:"maxBurstSeconds"`  // seconds of permits that accumulate
	MaxWaitMillis    int64   `json:"maxWaitMillis"`    // longest wait of a caller, in ms
}

// DefaultRate returns the rate of a sale that sets none.
func DefaultRate() Rate {
	return Rate{
		Algorithm: "reserve", PermitsPerSecond: 1000, MaxBurstSeconds: 1, MaxWaitMillis: 1000,
	}
}

// GoodsIDs returns the goods ids of sales.
func GoodsIDs(sales []Sale) []int64 {
	ids := make([]int64, len(sales))
	for i, s := range sales {
		ids[i] = s.GoodsID
	}
	return ids
}

// SameTerms reports whether Redis' and MySQL's copies of a sale have the same status, window,
// limit, rate, title and price. The stock is compared apart, and Redis has no details.
func (s Sale) SameTerms(as Sale) bool {
	return s.Status == as.Status && s.StartAt.Equal(as.StartAt) && s.EndAt.Equal(as.EndAt) &&
		s.PerBuyerLimit == as.PerBuyerLimit && s.Title == as.Title && s.Price == as.Price &&
		s.Rate == as.Rate
}

// PhaseAt returns the phase at a moment for available units. The window is [StartAt, EndAt).
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

// CheckSelling returns nil if the sale sells at a moment, or the refusal. The window decides before
// the stock does, so a sale that has not started is never sold out.
func (s Sale) CheckSelling(now time.Time, available int64) error {
	switch s.PhaseAt(now, available) {
	case Upcoming:
		return apierror.New(apierror.NotStarted, "the sale has not started").
			With("startAt", s.StartAt)
	case PhaseEnded:
		return apierror.New(apierror.Ended, "the sale is over")
	case PhaseSoldOut:
		if s.Admission == ByWaitingRoom {
			return nil // the room knows whether units may return
		}
		return NewSoldOut(0)
	default:
		return nil
	}
}

// NewSoldOut returns the refusal of a purchase of more than the available units.
func NewSoldOut(available int64) error {
	return apierror.New(apierror.SoldOut, "sold out").With("available", available)
}
