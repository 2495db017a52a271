package salechange

import (
	"time"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/seckill"
)

// Change lists the fields of a sale that a merchant changes. A nil field keeps its value.
type Change struct {
	Title         *string    `json:"title,omitempty"`
	Price         *int64     `json:"price,omitempty"`
	StartAt       *time.Time `json:"startAt,omitempty"`
	EndAt         *time.Time `json:"endAt,omitempty"`
	PerBuyerLimit *int64     `json:"perBuyerLimit,omitempty"`
	Rate          RateChange `json:"rate"`
	Description   *string    `json:"description,omitempty"`
	ImageURL      *string    `json:"imageUrl,omitempty"`
	ExternalID    *string    `json:"externalId,omitempty"`
	Metadata      *string    `json:"metadata,omitempty"` // as in seckill.Details
	Currency      *string    `json:"currency,omitempty"`
	// Admission changes in a draft only: buyers of an exposed sale have their places.
	Admission *seckill.Admission `json:"admission,omitempty"`
	// AccessCode changes in a draft only: buyers of an exposed sale have random paths.
	AccessCode *seckill.AccessCode `json:"accessCode,omitempty"`
	StockDelta int64               `json:"stockDelta,omitempty"` // units added; negative: removed
}

// RateChange lists the fields of a rate that change. A nil field keeps its value.
type RateChange struct {
	Algorithm        *string  `json:"algorithm,omitempty"`
	PermitsPerSecond *float64 `json:"permitsPerSecond,omitempty"`
	MaxBurstSeconds  *float64 `json:"maxBurstSeconds,omitempty"`
	MaxWaitMillis    *int64   `json:"maxWaitMillis,omitempty"`
}

// ChangesTerms reports whether a field changes that Redis also has of an exposed sale. The stock is
// not such a field: it reaches Redis by stock moves.
func (c Change) ChangesTerms() bool {
	return c.StartAt != nil || c.EndAt != nil || c.PerBuyerLimit != nil || c.Rate != RateChange{}
}

// HasFields reports whether anything but the stock changes.
func (c Change) HasFields() bool {
	c.StockDelta = 0
	return c != Change{}
}

// Validate returns a BadRequest for the fields that no sale could accept.
func (c Change) Validate() error {
	var p apierror.Problems
	p.Check(c.StockDelta < -seckill.MaxStock || c.StockDelta > seckill.MaxStock,
		"stockDelta", "must be -%d to %d, and not 0", seckill.MaxStock, seckill.MaxStock)
	// The sample is within all bounds, so only the change can cause a violation.
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	sample := seckill.Sale{
		Title: "x", Total: 1, PerBuyerLimit: 1, StartAt: start,
		EndAt: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), Rate: seckill.DefaultRate(),
	}
	c.StockDelta = 0
	if err := p.Join(asNew(c.set(sample)).Validate()); err != nil {
		return err
	}
	return p.Err()
}

// Apply returns the changed sale. It returns Conflict if the sale's status does not allow the
// change, and BadRequest if the result is out of bounds. Redis also checks a stock cut of an
// exposed sale.
func (c Change) Apply(s seckill.Sale) (seckill.Sale, error) {
	switch {
	case s.Status == seckill.Closed:
		return s, apierror.New(apierror.Conflict, "the sale is closed and changes no more")
	case s.Status == seckill.Exposed && (differs(c.Title, s.Title) || differs(c.Price, s.Price) ||
		differs(c.Currency, s.Details.Currency) || differs(c.Admission, s.Admission) ||
		differs(c.AccessCode, s.AccessCode)):
		return s, apierror.New(apierror.Conflict,
			"title, price, currency, admission and accessCode can be changed in a draft only")
	}
	after := c.set(s)
	if s.Status == seckill.Exposed && c.StockDelta < 0 && after.Stock < 0 {
		return s, NewStockDeltaError(s.Stock)
	}
	judged := asNew(after)
	if s.Status == seckill.Exposed && after.Total == 0 {
		judged.Stock = 1 // a cut may remove everything that is unsold
	}
	if after.Total > seckill.MaxStock || after.Total < 0 ||
		s.Status == seckill.Draft && after.Total < 1 {
		return s, apierror.NewBadField("stockDelta", "would make the stock %d; it must be 1 to %d",
			after.Total, seckill.MaxStock)
	}
	return after, judged.Validate()
}

// set returns the sale with the fields set and not checked.
func (c Change) set(s seckill.Sale) seckill.Sale {
	set(&s.Title, c.Title)
	set(&s.Price, c.Price)
	set(&s.StartAt, c.StartAt)
	set(&s.EndAt, c.EndAt)
	set(&s.PerBuyerLimit, c.PerBuyerLimit)
	set(&s.Admission, c.Admission)
	set(&s.AccessCode, c.AccessCode)
	set(&s.Rate.Algorithm, c.Rate.Algorithm)
	set(&s.Rate.PermitsPerSecond, c.Rate.PermitsPerSecond)
	set(&s.Rate.MaxBurstSeconds, c.Rate.MaxBurstSeconds)
	set(&s.Rate.MaxWaitMillis, c.Rate.MaxWaitMillis)
	set(&s.Details.Description, c.Description)
	set(&s.Details.ImageURL, c.ImageURL)
	set(&s.Details.ExternalID, c.ExternalID)
	set(&s.Details.Metadata, c.Metadata)
	set(&s.Details.Currency, c.Currency)
	s.StartAt = s.StartAt.UTC().Truncate(time.Millisecond)
	s.EndAt = s.EndAt.UTC().Truncate(time.Millisecond)
	s.Total, s.Stock = s.Total+c.StockDelta, s.Stock+c.StockDelta
	// A draft has no orders under an older limit.
	if s.MaxPerBuyerLimit = max(s.MaxPerBuyerLimit, s.PerBuyerLimit); s.Status == seckill.Draft {
		s.MaxPerBuyerLimit = s.PerBuyerLimit
	}
	return s
}

// differs reports whether a field of a change has another value than the sale.
func differs[T comparable](v *T, now T) bool { return v != nil && *v != now }

// set assigns *v unless v is nil.
func set[T any](to *T, v *T) {
	if v != nil {
		*to = *v
	}
}

// asNew returns the fields that NewSale.Validate checks, so that a change and a new sale have the
// same bounds.
func asNew(s seckill.Sale) seckill.NewSale {
	return seckill.NewSale{
		Title: s.Title, Price: s.Price, Stock: s.Total, StartAt: s.StartAt, EndAt: s.EndAt,
		PerBuyerLimit: s.PerBuyerLimit, Rate: s.Rate, Details: s.Details,
	}
}

// NewStockDeltaError returns the refusal of a cut below the available units.
func NewStockDeltaError(available int64) *apierror.Error {
	return apierror.New(apierror.Conflict, "only what is unsold can be taken off sale").
		With("available", available)
}
