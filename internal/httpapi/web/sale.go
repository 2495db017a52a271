package web

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"flashsale.dev/seckill/internal/event"
)

// Sale is the content of a sale's card. Scripts read a part of it as JSON, with the names of the
// API. They read the goods id and the phase from attributes of the card.
type Sale struct {
	GoodsID       string `json:"-"`
	Title         string `json:"-"`
	Price         int64  `json:"-"`
	Currency      string `json:"-"`
	PerBuyerLimit int64  `json:"perBuyerLimit"`
	Admission     string `json:"admission"`
	AccessCode    string `json:"-"`
	Phase         string `json:"-"`
	Available     int64  `json:"available"`
	Total         int64  `json:"total"`
	// Returns is whether units may return to the line of a sale that is sold out.
	Returns      bool   `json:"returns,omitzero"`
	StartAt      string `json:"startAt"`
	EndAt        string `json:"endAt"`
	Description  string `json:"-"`
	ImageURL     string `json:"-"`
	starts, ends time.Time
}

// WithTimes returns the sale with its start and end.
func (s Sale) WithTimes(start, end time.Time) Sale {
	s.starts, s.ends = start, end
	s.StartAt, s.EndAt = event.FormatTime(start), event.FormatTime(end)
	return s
}

// StartUTC is the start for readers without scripts. Scripts replace it by the reader's own time.
func (s Sale) StartUTC() string { return s.starts.UTC().Format(timeUTC) }

// EndUTC is the end for readers without scripts.
func (s Sale) EndUTC() string { return s.ends.UTC().Format(timeUTC) }

const timeUTC = "2006-01-02 15:04:05 UTC"

// pictureHost is what a picture's host may consist of. Other characters, such as a semicolon, would
// end the directive of the Content-Security-Policy that names the host.
var pictureHost = regexp.MustCompile(`^[0-9A-Za-z.-]+(:[0-9]+)?$`)

// Picture returns the address of the sale's picture, or "" if pages cannot show it.
func (s Sale) Picture() string {
	if s.pictureOrigin() == "" {
		return ""
	}
	return s.ImageURL
}

func (s Sale) pictureOrigin() string {
	u, err := url.Parse(s.ImageURL)
	if err != nil || u.Scheme != "https" || !pictureHost.MatchString(u.Host) {
		return ""
	}
	return "https://" + u.Host
}

// Policy returns the Content-Security-Policy of the sale's own page: it allows the picture's origin
// too.
func (s Sale) Policy() string {
	origin := s.pictureOrigin()
	if origin == "" {
		return Policy
	}
	return strings.Replace(Policy, "img-src 'self'", "img-src 'self' "+origin, 1)
}

// Summary returns the description in the preview of a link: the beginning of the sale's own, else
// its price and what is left. A currency that is not of ISO 4217 is an error.
func (s *Site) Summary(lang Lang, sale Sale) (string, error) {
	p := Page{Lang: lang, site: s}
	text := []rune(strings.Join(strings.Fields(sale.Description), " "))
	switch {
	case len(text) > summaryLength:
		return string(text[:summaryLength-1]) + "…", nil
	case len(text) > 0:
		return string(text), nil
	}
	price, err := p.Price(sale.Price, sale.Currency)
	return p.T("item.share", "price", price, "left", p.Count(sale.Available),
		"total", p.Count(sale.Total)), err
}

// summaryLength is how many characters sites show of a description.
const summaryLength = 200

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

// HasRoom reports whether buyers wait in a line, whose positions a draw decides.
func (s Sale) HasRoom() bool { return s.Admission == "waitingRoom" }

// Chip names the text of the card's chip, as static/cards.js does.
func (s Sale) Chip() string {
	if s.Phase == "sold_out" && s.Returns {
		return "phase.returns"
	}
	return "phase." + s.Phase
}

// Hue is the card's colour, 0 to 7. It depends on the title only, so it never changes.
func (s Sale) Hue() int {
	sum := uint32(0)
	for _, r := range s.Title {
		sum = sum*31 + uint32(r)
	}
	return int((sum >> 8) % 8)
}

// SaleGroups are the sections of the shop page.
type SaleGroups struct {
	Now, Soon, Over []Sale
}

// groupSales divides sales into those on sale, upcoming (the next first) and ended.
func groupSales(sales []Sale) SaleGroups {
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
