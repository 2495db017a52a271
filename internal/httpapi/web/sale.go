package web

import (
	"slices"
	"strings"
	"time"
)

// Sale is the content of a sale's card. Scripts read it as JSON with the names of the API.
type Sale struct {
	GoodsID       string `json:"goodsId"`
	Title         string `json:"title"`
	Price         int64  `json:"price"`
	Currency      string `json:"currency"`
	PerBuyerLimit int64  `json:"perBuyerLimit"`
	Admission     string `json:"admission"`
	AccessCode    string `json:"accessCode"`
	Phase         string `json:"phase"`
	Available     int64  `json:"available"`
	Total         int64  `json:"total"`
	StartAt       string `json:"startAt"`
	EndAt         string `json:"endAt"`
	starts        time.Time
}

// WithTimes returns the sale with its start and end.
func (s Sale) WithTimes(start, end time.Time) Sale {
	s.starts = start
	s.StartAt, s.EndAt = Page{}.Time(start), Page{}.Time(end)
	return s
}

// Share is the per cent of units that are left; at least 1 while any unit is left.
func (s Sale) Share() int64 {
	if s.Total <= 0 || s.Available <= 0 {
		return 0
	}
	return max(1, s.Available*100/s.Total)
}

// Few reports whether at most 10 % of the units are left.
func (s Sale) Few() bool { return s.Available > 0 && s.Share() <= 10 }

// AsksForCode reports whether buyers need an access code.
func (s Sale) AsksForCode() bool { return s.AccessCode == "shared" || s.AccessCode == "single" }

// Hue is the card's colour, 0 to 7. It depends on the title only, so it never changes.
func (s Sale) Hue() int {
	sum := uint32(0)
	for _, r := range s.Title {
		sum = sum*31 + uint32(r)
	}
	return int(sum >> 8 % 8)
}

// Quantities are the choices of the quantity field.
func (s Sale) Quantities() []int64 {
	all := make([]int64, 0, 10)
	for n := int64(1); n <= min(s.PerBuyerLimit, 10); n++ {
		all = append(all, n)
	}
	return all
}

// SaleGroups are the sections of the shop page.
type SaleGroups struct {
	Now, Soon, Over []Sale
}

// GroupSales divides sales into those on sale, upcoming (the next first) and ended.
func GroupSales(sales []Sale) SaleGroups {
	var s SaleGroups
	for _, sale := range sales {
		switch sale.Phase {
		case "upcoming":
			s.Soon = append(s.Soon, sale)
		case "ended":
			s.Over = append(s.Over, sale)
		default:
			s.Now = append(s.Now, sale)
		}
	}
	// "ongoing" sorts before "sold_out".
	slices.SortStableFunc(s.Now, func(a, b Sale) int { return strings.Compare(a.Phase, b.Phase) })
	slices.SortStableFunc(s.Soon, func(a, b Sale) int { return a.starts.Compare(b.starts) })
	return s
}
