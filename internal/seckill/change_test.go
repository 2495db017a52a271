package seckill

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhatAChangeMayDo(t *testing.T) {
	now := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	draft := NewSale{Title: "tea", Price: 5, Stock: 10, StartAt: now, EndAt: now.Add(time.Hour), PerBuyerLimit: 3, Rate: DefaultRate()}.Draft(1, now)
	exposed, closed := draft, draft
	exposed.Status, exposed.Stock, closed.Status = Exposed, 4, Closed // six are sold
	for name, c := range map[string]struct {
		sale   Sale
		change Change
		reason Reason
		field  string
	}{
		"a draft's title":           {draft, Change{Title: new("coffee"), Price: new(int64(0))}, "", ""},
		"an exposed sale's title":   {exposed, Change{Title: new("coffee")}, Conflict, ""},
		"an exposed sale's price":   {exposed, Change{Price: new(int64(5))}, Conflict, ""},
		"a closed sale":             {closed, Change{EndAt: new(now.Add(time.Minute))}, Conflict, ""},
		"times while it sells":      {exposed, Change{EndAt: new(now.Add(time.Minute))}, "", ""},
		"an end before the start":   {exposed, Change{EndAt: new(now)}, BadRequest, "endAt"},
		"a cut to what is sold":     {exposed, Change{StockDelta: -4}, "", ""},
		"a cut of what is sold":     {exposed, Change{StockDelta: -5}, Conflict, ""},
		"a draft of nothing":        {draft, Change{StockDelta: -10}, BadRequest, "stockDelta"},
		"more than there may be":    {exposed, Change{StockDelta: MaxStock}, BadRequest, "stockDelta"},
		"a rate's burst":            {exposed, Change{Rate: RateChange{MaxBurstSeconds: new(2.0)}}, "", ""},
		"a rate that is none":       {exposed, Change{Rate: RateChange{PermitsPerSecond: new(0.0)}}, BadRequest, "rate.permitsPerSecond"},
		"nothing at all":            {exposed, Change{}, "", ""},
		"a limit beyond its bounds": {draft, Change{PerBuyerLimit: new(int64(1001))}, BadRequest, "perBuyerLimit"},
	} {
		after, err := c.change.Apply(c.sale)
		require.Equal(t, c.reason, ReasonOf(err), name)
		if e, ok := err.(*Error); ok { //nolint:errorlint // the refusal itself
			require.Equal(t, c.field, e.Field, name)
		} else {
			require.Equal(t, c.sale.Total-c.sale.Stock, after.Total-after.Stock, "%s: what is sold stays sold", name)
		}
	}
}

func TestALowerLimitLeavesTheHighestStanding(t *testing.T) {
	sale := Sale{Status: Exposed, PerBuyerLimit: 3, MaxPerBuyerLimit: 3}
	lower := Change{PerBuyerLimit: new(int64(1))}.apply(sale)
	require.EqualValues(t, []int64{1, 3}, []int64{lower.PerBuyerLimit, lower.MaxPerBuyerLimit}, "orders taken under it are still written")
	higher := Change{PerBuyerLimit: new(int64(5))}.apply(lower)
	require.EqualValues(t, []int64{5, 5}, []int64{higher.PerBuyerLimit, higher.MaxPerBuyerLimit})
	sale.Status = Draft
	require.EqualValues(t, 1, Change{PerBuyerLimit: new(int64(1))}.apply(sale).MaxPerBuyerLimit)
}
