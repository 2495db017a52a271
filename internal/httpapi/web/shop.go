package web

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Filter selects sales of the shop page. The zero value selects all.
type Filter struct {
	Text  string // part of the title, in either case; "": any
	Phase string // one of Phases; "": any
}

// Phases are the values of Filter.Phase, in the order of the page.
func Phases() []string { return []string{"ongoing", "upcoming", "sold_out", "ended"} }

func (f Filter) selects(s Sale) bool {
	return (f.Phase == "" || f.Phase == s.Phase) &&
		strings.Contains(strings.ToLower(s.Title), strings.ToLower(f.Text))
}

// Shop is the data of the shop page: one page of the sales that a filter selects.
type Shop struct {
	SaleGroups
	Filter
	Number, Pages int  // of this page, from 1; at least one page
	Narrow        bool // the filter or the page leaves sales out
}

// NewShop returns the page of this number, with at most size sales. Sales that are on come first. A
// number out of range is the nearest page.
func NewShop(sales []Sale, f Filter, number, size int) Shop {
	var found []Sale
	for _, s := range sales {
		if f.selects(s) {
			found = append(found, s)
		}
	}
	groups := groupSales(found)
	ordered := slices.Concat(groups.Now, groups.Soon, groups.Over)
	pages := max(1, (len(ordered)+size-1)/size)
	number = min(max(1, number), pages)
	from := (number - 1) * size
	return Shop{
		SaleGroups: groupSales(ordered[from:min(from+size, len(ordered))]), Filter: f,
		Number: number, Pages: pages, Narrow: f != Filter{} || pages > 1,
	}
}

// PhaseNames are Phases, for the template.
func (Shop) PhaseNames() []string { return Phases() }

// Previous returns the address of the page before this one, or "".
func (s Shop) Previous() string { return s.address(s.Number - 1) }

// Next returns the address of the page after this one, or "".
func (s Shop) Next() string { return s.address(s.Number + 1) }

func (s Shop) address(number int) string {
	if number < 1 || number > s.Pages {
		return ""
	}
	query := url.Values{"page": {strconv.Itoa(number)}}
	if s.Text != "" {
		query.Set("q", s.Text)
	}
	if s.Phase != "" {
		query.Set("phase", s.Phase)
	}
	return "/?" + query.Encode()
}
