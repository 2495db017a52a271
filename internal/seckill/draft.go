package seckill

import (
	"cmp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"flashsale.dev/seckill/internal/apierror"
)

// Bounds of a sale; the contract states them.
const (
	maxTitle         = 120 // characters
	MaxPrice         = 1_000_000_000_000
	MaxStock         = 100_000_000
	MaxPerBuyerLimit = 1000
)

// NewSale is a merchant's description of a new sale.
type NewSale struct {
	Title         string
	Price         int64
	Stock         int64
	StartAt       time.Time
	EndAt         time.Time
	PerBuyerLimit int64
	Rate          Rate
	Admission     Admission  // "" is ByRate
	AccessCode    AccessCode // "" is NoCodes
	Details       Details
}

// Validate returns a BadRequest for the fields that are out of their bounds.
func (n NewSale) Validate() error {
	var p apierror.Problems
	p.Check(strings.TrimSpace(n.Title) == "" || utf8.RuneCountInString(n.Title) > maxTitle,
		"title", "must have 1 to %d characters", maxTitle)
	p.Check(strings.ContainsFunc(n.Title, unicode.IsControl),
		"title", "must not contain control characters")
	p.Check(n.Price < 0 || n.Price > MaxPrice, "price", "must be 0 to %d", int64(MaxPrice))
	p.Check(n.Stock < 1 || n.Stock > MaxStock, "stock", "must be 1 to %d", MaxStock)
	p.Check(n.PerBuyerLimit < 1 || n.PerBuyerLimit > MaxPerBuyerLimit,
		"perBuyerLimit", "must be 1 to %d", MaxPerBuyerLimit)
	p.Check(!validTime(n.StartAt), "startAt", "must be a time of the years 2000 to 9999")
	p.Check(!validTime(n.EndAt) || !n.EndAt.After(n.StartAt), "endAt",
		"must be a time after startAt")
	n.Details.validate(&p)
	n.Rate.validate(&p)
	return p.Err()
}

// validTime judges the year in UTC, in which times are stored and answered.
func validTime(t time.Time) bool { year := t.UTC().Year(); return year >= 2000 && year <= 9999 }

// Bounds of a rate.
const (
	maxPermitsPerSecond = 1_000_000
	maxBurstSeconds     = 3600
	MaxWaitMillis       = 60_000
)

// validate adds the fields that are out of their bounds. NaN is out of every bound.
func (r Rate) validate(p *apierror.Problems) {
	p.Check(!(r.PermitsPerSecond >= 0.001 && r.PermitsPerSecond <= maxPermitsPerSecond),
		"rate.permitsPerSecond", "must be 0.001 to %d", maxPermitsPerSecond)
	p.Check(!(r.MaxBurstSeconds >= 0 && r.MaxBurstSeconds <= maxBurstSeconds),
		"rate.maxBurstSeconds", "must be 0 to %d", maxBurstSeconds)
	p.Check(r.MaxWaitMillis < 0 || r.MaxWaitMillis > MaxWaitMillis,
		"rate.maxWaitMillis", "must be 0 to %d", MaxWaitMillis)
}

// Draft returns the draft that a merchant creates at a moment.
func (n NewSale) Draft(merchantID string, now time.Time) Sale {
	now = now.UTC().Truncate(time.Millisecond)
	return Sale{
		GoodsID: newGoodsID(now), MerchantID: merchantID, Title: n.Title, Price: n.Price,
		Total: n.Stock, Stock: n.Stock, PerBuyerLimit: n.PerBuyerLimit,
		MaxPerBuyerLimit: n.PerBuyerLimit, StartAt: n.StartAt.UTC().Truncate(time.Millisecond),
		EndAt: n.EndAt.UTC().Truncate(time.Millisecond), Rate: n.Rate,
		Admission:  cmp.Or(n.Admission, ByRate),
		AccessCode: cmp.Or(n.AccessCode, NoCodes), Status: Draft, CreatedAt: now, UpdatedAt: now,
		Details: n.Details,
	}
}
