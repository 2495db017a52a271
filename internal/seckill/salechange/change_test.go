package salechange

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/seckill"
)

// TestChange_ApplyByStatusAndBounds checks that the status of a sale and the bounds of its fields
// decide which changes apply.
func TestChange_ApplyByStatusAndBounds(t *testing.T) {
	now := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	draft := seckill.NewSale{
		Title: "tea", Price: 5, Stock: 10, StartAt: now, EndAt: now.Add(time.Hour),
		PerBuyerLimit: 3, Rate: seckill.DefaultRate(),
	}.Draft("1", now)
	exposed, closed := draft, draft
	exposed.Status, exposed.Stock, closed.Status = seckill.Exposed, 4, seckill.Closed // six sold
	unsold := exposed
	unsold.Stock = unsold.Total
	for name, c := range map[string]struct {
		sale   seckill.Sale
		change Change
		reason apierror.Reason
		field  string
	}{
		"a draft's title": {draft, Change{Title: new("mate"), Price: new(int64(0))}, "", ""},
		"an exposed title that stays": {
			exposed, Change{
				Title: new("tea"), Price: new(int64(5)), Currency: new(""),
				Admission: new(exposed.Admission), AccessCode: new(exposed.AccessCode),
			}, "", "",
		},
		"an exposed title":    {exposed, Change{Title: new("coffee")}, apierror.Conflict, ""},
		"an exposed price":    {exposed, Change{Price: new(int64(6))}, apierror.Conflict, ""},
		"an exposed currency": {exposed, Change{Currency: new("EUR")}, apierror.Conflict, ""},
		"an exposed admission": {
			exposed, Change{Admission: new(seckill.ByWaitingRoom)}, apierror.Conflict, "",
		},
		"exposed access codes": {
			exposed, Change{AccessCode: new(seckill.SingleCodes)}, apierror.Conflict, "",
		},
		"a cut of everything":   {unsold, Change{StockDelta: -10}, "", ""},
		"a closed sale":         {closed, Change{EndAt: new(now)}, apierror.Conflict, ""},
		"times while it sells":  {exposed, Change{EndAt: new(now.Add(time.Minute))}, "", ""},
		"an end at the start":   {exposed, Change{EndAt: new(now)}, apierror.BadRequest, "endAt"},
		"a cut to what is sold": {exposed, Change{StockDelta: -4}, "", ""},
		"a cut of what is sold": {exposed, Change{StockDelta: -5}, apierror.Conflict, ""},
		"a draft of nothing": {
			draft, Change{StockDelta: -10}, apierror.BadRequest, "stockDelta",
		},
		"more than allowed": {exposed, Change{
			StockDelta: seckill.MaxStock,
		}, apierror.BadRequest, "stockDelta"},
		"a rate's burst": {exposed, Change{Rate: RateChange{MaxBurstSeconds: new(2.0)}}, "", ""},
		"a rate that is none": {exposed, Change{Rate: RateChange{
			PermitsPerSecond: new(0.0),
		}}, apierror.BadRequest, "rate.permitsPerSecond"},
		"nothing at all": {exposed, Change{}, "", ""},
		"a limit too high": {draft, Change{
			PerBuyerLimit: new(int64(1001)),
		}, apierror.BadRequest, "perBuyerLimit"},
	} {
		after, err := c.change.Apply(c.sale)
		require.Equal(t, c.reason, apierror.ReasonOf(err), name)
		if e, ok := err.(*apierror.Error); ok { //nolint:errorlint // Apply does not wrap it
			require.Equal(t, c.field != "", len(e.Problems) == 1, name)
			for _, p := range e.Problems {
				require.Equal(t, c.field, p.Field, name)
			}
		} else {
			require.Equal(t, c.sale.Total-c.sale.Stock, after.Total-after.Stock,
				"%s: a change keeps the sold units", name)
		}
	}
}

// TestChange_LowerLimitKeepsMaxPerBuyerLimit checks that a lower limit of an exposed sale keeps the
// highest limit that it ever had.
func TestChange_LowerLimitKeepsMaxPerBuyerLimit(t *testing.T) {
	sale := seckill.Sale{Status: seckill.Exposed, PerBuyerLimit: 3, MaxPerBuyerLimit: 3}
	lower := Change{PerBuyerLimit: new(int64(1))}.set(sale)
	require.EqualValues(t, []int64{1, 3}, []int64{lower.PerBuyerLimit, lower.MaxPerBuyerLimit},
		"orders reserved under the old limit are still written")
	higher := Change{PerBuyerLimit: new(int64(5))}.set(lower)
	require.EqualValues(t, []int64{5, 5}, []int64{higher.PerBuyerLimit, higher.MaxPerBuyerLimit})
	sale.Status = seckill.Draft
	require.EqualValues(t, 1, Change{PerBuyerLimit: new(int64(1))}.set(sale).MaxPerBuyerLimit)
}
