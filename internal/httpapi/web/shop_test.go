package web

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNewShop_PutsEachSaleOnOnePage turns the pages of 500 sales. Each sale is on one page, and
// those that are on come first.
func TestNewShop_PutsEachSaleOnOnePage(t *testing.T) {
	sales := make([]Sale, 500)
	for i := range sales {
		phase := Phases()[i%4]
		sales[i] = Sale{GoodsID: fmt.Sprint(i), Title: fmt.Sprintf("Lamp %d", i), Phase: phase}
	}
	seen, rank := map[string]bool{}, 0
	order := map[string]int{"ongoing": 0, "sold_out": 1, "upcoming": 2, "ended": 3}
	for n := 1; ; n++ {
		s := NewShop(sales, Filter{}, n, 24)
		require.Equal(t, 21, s.Pages)
		for _, group := range [][]Sale{s.Now, s.Soon, s.Over} {
			for _, sale := range group {
				require.False(t, seen[sale.GoodsID])
				seen[sale.GoodsID] = true
				require.GreaterOrEqual(t, order[sale.Phase], rank)
				rank = order[sale.Phase]
			}
		}
		if s.Next() == "" {
			break
		}
		require.Equal(t, fmt.Sprintf("/?page=%d", n+1), s.Next())
	}
	require.Len(t, seen, 500)
}

func TestNewShop_FiltersAndKeepsTheFilterInItsLinks(t *testing.T) {
	sales := []Sale{
		{Title: "Red LAMP", Phase: "ongoing"},
		{Title: "lamp & shade", Phase: "ongoing"},
		{Title: "Lamp", Phase: "ended"},
		{Title: "Chair", Phase: "ongoing"},
	}
	s := NewShop(sales, Filter{Text: "lamp", Phase: "ongoing"}, 1, 1)
	require.Equal(t, 2, s.Pages)
	require.Empty(t, s.Previous())
	require.Equal(t, "/?page=2&phase=ongoing&q=lamp", s.Next())
	require.Equal(t, 2, NewShop(sales, s.Filter, 99, 1).Number)
	require.Equal(t, 1, NewShop(sales, Filter{Text: "nothing"}, -1, 1).Pages)
}
