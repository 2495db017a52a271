package seckill

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/testing/property"
)

func newSale() NewSale {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	return NewSale{
		Title: "tea", Price: 1, Stock: 1, PerBuyerLimit: 1, StartAt: start,
		EndAt: start.Add(time.Hour), Rate: DefaultRate(),
	}
}

// TestNewSale_ValidateNamesFieldOutOfBounds checks that Validate rejects each field out of its
// bounds and names that field.
func TestNewSale_ValidateNamesFieldOutOfBounds(t *testing.T) {
	require.NoError(t, newSale().Validate())
	for field, changes := range map[string][]func(*NewSale){
		"title": {
			func(n *NewSale) { n.Title = "" }, func(n *NewSale) { n.Title = "  " },
			func(n *NewSale) { n.Title = "a\r\nb" },
			func(n *NewSale) { n.Title = strings.Repeat("茶", maxTitle+1) },
		},
		"price": {
			func(n *NewSale) { n.Price = -1 }, func(n *NewSale) { n.Price = MaxPrice + 1 },
		},
		"stock": {
			func(n *NewSale) { n.Stock = 0 }, func(n *NewSale) { n.Stock = MaxStock + 1 },
		},
		"perBuyerLimit": {
			func(n *NewSale) { n.PerBuyerLimit = 0 },
			func(n *NewSale) { n.PerBuyerLimit = MaxPerBuyerLimit + 1 },
		},
		"startAt": {func(n *NewSale) { n.StartAt = time.Time{} }},
		"endAt": {
			func(n *NewSale) { n.EndAt = n.StartAt },
			func(n *NewSale) { n.EndAt = n.StartAt.AddDate(9000, 0, 0) },
			func(n *NewSale) { // in UTC this is the year 10000
				n.EndAt = time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600))
			},
		},
		"rate.permitsPerSecond": {
			func(n *NewSale) { n.Rate.PermitsPerSecond = 0 },
			func(n *NewSale) { n.Rate.PermitsPerSecond = math.NaN() },
			func(n *NewSale) { n.Rate.PermitsPerSecond = math.Inf(1) },
		},
		"rate.maxBurstSeconds": {func(n *NewSale) { n.Rate.MaxBurstSeconds = -1 }},
		"rate.maxWaitMillis":   {func(n *NewSale) { n.Rate.MaxWaitMillis = MaxWaitMillis + 1 }},
	} {
		for i, change := range changes {
			n := newSale()
			change(&n)
			var refusal *apierror.Error
			require.ErrorAs(t, n.Validate(), &refusal, "%s %d", field, i)
			require.Equal(t, apierror.BadRequest, refusal.Reason)
			require.Equal(t, field, refusal.Problems[0].Field)
		}
	}
}

// TestNewSale_ValidateAcceptsTheBounds checks the least and the largest value of each field.
func TestNewSale_ValidateAcceptsTheBounds(t *testing.T) {
	least := newSale()
	least.Price = 0
	least.StartAt = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	least.Rate = Rate{Algorithm: DefaultRate().Algorithm, PermitsPerSecond: 0.001}
	require.NoError(t, least.Validate())

	pairs := map[string]string{strings.Repeat("z", 40): strings.Repeat("茶", maxPairValue)}
	for len(pairs) < maxPairs {
		pairs[strconv.Itoa(len(pairs))] = ""
	}
	image := "https://a/"
	largest := NewSale{
		Title: strings.Repeat("茶", maxTitle), Price: MaxPrice, Stock: MaxStock,
		PerBuyerLimit: MaxPerBuyerLimit, StartAt: least.StartAt,
		EndAt: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		Rate: Rate{
			Algorithm: DefaultRate().Algorithm, PermitsPerSecond: maxPermitsPerSecond,
			MaxBurstSeconds: maxBurstSeconds, MaxWaitMillis: MaxWaitMillis,
		},
		Details: Details{
			Description: strings.Repeat("茶", maxDescription-2) + "\n\t",
			ImageURL:    image + strings.Repeat("b", maxImageURL-len(image)),
			ExternalID:  "!~" + strings.Repeat("c", maxExternalID-2),
			Metadata:    MetadataOf(pairs),
		},
	}
	require.NoError(t, largest.Validate())
	largest.Details.Description += "d"
	largest.Details.ImageURL += "b"
	largest.Details.ExternalID += "c"
	pairs["more"] = ""
	largest.Details.Metadata = MetadataOf(pairs)
	var refusal *apierror.Error
	require.ErrorAs(t, largest.Validate(), &refusal)
	require.Len(t, refusal.Problems, 4)
}

// TestIsCurrency_IsMoney checks that a sale can have a price in each currency that is accepted. ISO
// 4217 also has codes of metals, funds, units of account, tests and no currency.
func TestIsCurrency_IsMoney(t *testing.T) {
	for _, code := range []string{"CNY", "EUR", "JPY", "KWD", "XAF", "XCD", "XPF", "XCG", "SLE"} {
		require.True(t, IsCurrency(code), code)
	}
	for _, code := range []string{
		"", "eur", "EURO", "ABC", "XXX", "XTS", "XAU", "XAG", "XPT", "XPD", "XBA", "XBB", "XBC",
		"XBD", "XDR", "XSU", "XUA", "XAD", "BOV", "CHE", "CHW", "CLF", "COU", "MXV", "USN", "UYI",
		"UYW",
	} {
		require.False(t, IsCurrency(code), code)
	}
}

// TestSale_WindowIsHalfOpen checks that a sale sells from StartAt, inclusive, to EndAt, exclusive.
func TestSale_WindowIsHalfOpen(t *testing.T) {
	s := newSale().Draft("1", time.Now())
	s.Status = Exposed
	for _, c := range []struct {
		at        time.Time
		available int64
		phase     Phase
		reason    apierror.Reason
	}{
		{s.StartAt.Add(-time.Millisecond), 1, Upcoming, apierror.NotStarted},
		{s.StartAt.Add(-time.Millisecond), 0, Upcoming, apierror.NotStarted},
		{s.StartAt, 1, Ongoing, ""},
		{s.StartAt, 0, PhaseSoldOut, apierror.SoldOut},
		{s.EndAt.Add(-time.Millisecond), 1, Ongoing, ""},
		{s.EndAt, 1, PhaseEnded, apierror.Ended},
		{s.EndAt, 0, PhaseEnded, apierror.Ended},
	} {
		require.Equal(t, c.phase, s.PhaseAt(c.at, c.available))
		require.Equal(t, c.reason, apierror.ReasonOf(s.CheckSelling(c.at, c.available)))
	}
	s.Status = Closed
	require.Equal(t, apierror.Ended, apierror.ReasonOf(s.CheckSelling(s.StartAt, 1)))
}

func TestGoodsID_IsPositiveAndGrows(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(idEpoch+1, 3_900_000_000_000).Draw(t, "ms")
		id, later := newGoodsID(time.UnixMilli(ms)), newGoodsID(time.UnixMilli(ms+1))
		require.Positive(t, id)
		require.Greater(t, later, id)
	})
}

// TestNewRowID_SortsByTheDatabasesTime checks ids of moments far from the process' clock.
func TestNewRowID_SortsByTheDatabasesTime(t *testing.T) {
	now, last := time.Now().Add(-time.Hour), ""
	first := NewRowID(now.Add(time.Millisecond)).String()
	for range 10_000 {
		id := NewRowID(now)
		require.Equal(t, []any{uuid.Version(7), uuid.RFC4122}, []any{id.Version(), id.Variant()})
		require.Less(t, last, id.String())
		last = id.String()
	}
	require.Less(t, last, first)
}

func TestActor_OnlyOwnerAndOperatorManage(t *testing.T) {
	require.True(t, Actor{ID: "1", Role: Merchant}.MayManage("1"))
	require.False(t, Actor{ID: "2", Role: Merchant}.MayManage("1"))
	require.False(t, Actor{ID: "1", Role: Buyer}.MayManage("1"))
	require.True(t, Actor{ID: "9", Role: Operator}.MayManage("1"))
}
