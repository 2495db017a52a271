package httpapi_test

import (
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// eventItem is an event as a program reads it.
type eventItem struct {
	ID, Type, GoodsID, OrderSn string
	Timestamp                  time.Time
	Data                       struct {
		Status, Title, ExternalID, Currency, BuyerID string
		Quantity, Amount, Total                      *int64
	}
}

type eventPage struct {
	Items      []eventItem
	NextCursor *string
}

// events lists the events that a user sees after an id.
func (h *fixture) events(who actor, after string, limit int) eventPage {
	h.t.Helper()
	target := "/admin/events?after=" + after + "&limit=" + strconv.Itoa(limit)
	return dataOf[eventPage](h, h.want(200, h.as(who, "GET", target, "")))
}

// TestEvents_ListsEachChangeByPages checks what a merchant's program reads: every field, page by
// page, in order, and only of the merchant's own sales.
func TestEvents_ListsEachChangeByPages(t *testing.T) {
	h := newFixture(t)
	began := time.Now().Add(-time.Minute)
	goods := h.sell(sale{"stock": 2, "externalId": "SKU-7", "currency": "EUR", "price": 150})
	sn := h.order(buyer(), goods, 2)
	h.want(200, h.as(buyer(), "POST", "/orders/"+sn+"/pay", ""))
	h.want(200, h.as(merchant(), "POST", "/admin/sales/"+goods+"/close", ""))
	var all []eventItem
	require.Eventually(t, func() bool {
		all = h.events(merchant(), "0", 100).Items
		return len(all) == 5
	}, time.Minute, 20*time.Millisecond)
	for i, want := range []struct{ kind, order, status string }{
		{"sale.exposed", "", "exposed"},
		{"order.created", sn, "created"},
		{"sale.sold_out", "", "exposed"},
		{"order.paid", sn, "paid"},
		{"sale.closed", "", "closed"},
	} {
		e := all[i]
		require.Equal(t, want.kind, e.Type)
		require.Equal(t, []string{goods, want.order, want.status, "A phone", "SKU-7", "EUR"},
			[]string{
				e.GoodsID, e.OrderSn, e.Data.Status, e.Data.Title, e.Data.ExternalID,
				e.Data.Currency,
			})
		require.WithinRange(t, e.Timestamp, began, time.Now().Add(time.Minute))
		if want.order == "" {
			require.EqualValues(t, 2, *e.Data.Total)
			require.Empty(t, e.Data.BuyerID)
			continue
		}
		require.Equal(t, "7", e.Data.BuyerID)
		require.EqualValues(t, 2, *e.Data.Quantity)
		require.EqualValues(t, 300, *e.Data.Amount)
	}
	var paged []eventItem
	for after := "0"; ; {
		page := h.events(merchant(), after, 2)
		paged = append(paged, page.Items...)
		if page.NextCursor == nil {
			break
		}
		after = *page.NextCursor
		require.Equal(t, page.Items[1].ID, after)
	}
	require.Equal(t, all, paged)
	require.Equal(t, all, h.events(operator(), "0", 100).Items)
	require.Empty(t, h.events(otherMerchant(), "0", 100).Items)
	require.Empty(t, h.events(merchant(), all[4].ID, 100).Items)
	require.Empty(t, h.events(merchant(), "9223372036854775807", 100).Items)
}

// TestEvents_RefusesBadInput checks the fields and the callers of the list.
func TestEvents_RefusesBadInput(t *testing.T) {
	h := newFixture(t)
	for field, values := range map[string][]string{
		"after": {"", "-1", "01", "1.5", "1e3", "x", "9223372036854775808", "1 OR 1=1", "\x00"},
		"limit": {"", "0", "101", "-1", "x"},
	} {
		for _, v := range values {
			r := h.as(merchant(), "GET", "/admin/events?"+field+"="+url.QueryEscape(v), "")
			h.want(400, r)
			require.Equal(t, field, dataOf[struct{ Field string }](h, r).Field, v)
		}
	}
	h.want(400, h.as(merchant(), "GET", "/admin/events?cursor=1", ""))
	h.want(403, h.as(buyer(), "GET", "/admin/events", ""))
	h.want(401, h.ask("GET", "/admin/events", ""))
}
