package web

import (
	"slices"
	"strings"
	"time"
)

// Sale is a sale as its card shows it; scripts read it as JSON, in the words of the API.
type Sale struct {
	GoodsID       string `json:"goodsId"`
	Title         string `json:"title"`
	Price         int64  `json:"price"`
	PerBuyerLimit int64  `json:"perBuyerLimit"`
	Phase         string `json:"phase"`
	Available     int64  `json:"available"`
	Total         int64  `json:"total"`
	StartAt       string `json:"startAt"`
	EndAt         string `json:"endAt"`
	starts        time.Time
}

// Stamp sets the times, for machines to read and for the order of the cards.
func (s Sale) WithTimes(start, end time.Time) Sale {
	s.starts = start
	s.StartAt, s.EndAt = Page{}.Time(start), Page{}.Time(end)
	return s
}

// Share is how much is left, in per cent; what is left at all is never none.
func (s Sale) Share() int64 {
	if s.Total <= 0 || s.Available <= 0 {
		return 0
	}
	return max(1, s.Available*100/s.Total)
}

// Few tells whether the last ones are being sold.
func (s Sale) Few() bool { return s.Available > 0 && s.Share() <= 10 }

// Hue is one of the eight colours of a card, always the same for a sale.
func (s Sale) Hue() int {
	sum := uint32(0)
	for _, r := range s.Title {
		sum = sum*31 + uint32(r)
	}
	return int(sum >> 8 % 8)
}

// Quantities are those that a buyer may choose from.
func (s Sale) Quantities() []int64 {
	all := make([]int64, 0, 10)
	for n := int64(1); n <= min(s.PerBuyerLimit, 10); n++ {
		all = append(all, n)
	}
	return all
}

// Motif names the drawing on a card: what the title seems to be about, else a parcel. Sales have no pictures.
func (s Sale) Motif() string {
	title := strings.ToLower(s.Title)
	for _, m := range motifs() {
		if slices.ContainsFunc(m.words, func(w string) bool { return strings.Contains(title, w) }) {
			return m.name
		}
	}
	return "parcel"
}

type motif struct {
	name  string
	words []string
}

// motifs are the symbols of static/art.svg, the particular before the general.
func motifs() []motif {
	return []motif{
		{"headphones", []string{"headphone", "earphone", "earbud", "headset", "耳机"}},
		{"phone", []string{"phone", "手机"}},
		{"kettle", []string{"kettle", "teapot", "tea", "壶", "茶"}},
		{"camera", []string{"camera", "lens", "相机", "镜头"}},
		{"shoe", []string{"shoe", "sneaker", "boot", "trainer", "鞋"}},
		{"lamp", []string{"lamp", "light", "灯"}},
		{"watch", []string{"watch", "clock", "表"}},
		{"ticket", []string{"ticket", "concert", "show", "票"}},
		{"bag", []string{"bag", "backpack", "rucksack", "包"}},
	}
}

// SaleGroups are the sales as the shop lays them out.
type SaleGroups struct {
	Now, Soon, Over []Sale
}

// GroupSales sorts sales into those that sell, those to come (the next first) and those that are over.
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
	slices.SortStableFunc(s.Now, func(a, b Sale) int { return strings.Compare(a.Phase, b.Phase) }) // ongoing before sold_out
	slices.SortStableFunc(s.Soon, func(a, b Sale) int { return a.starts.Compare(b.starts) })
	return s
}
