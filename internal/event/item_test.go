package event_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/reservation"
	"flashsale.dev/seckill/internal/testing/must"
)

// stored is a store of events.
type stored []event.Event

func (s stored) Events(context.Context, event.Filter, int) ([]event.Event, error) { return s, nil }

// TestFeed_ItemHasTheStatusOfItsType checks every field of an item, and that an event shows the
// status after it and not the order's present one.
func TestFeed_ItemHasTheStatusOfItsType(t *testing.T) {
	sale := seckill.Sale{
		GoodsID: 5, Title: "A phone", Total: 9, Details: seckill.Details{ExternalID: "SKU-7"},
	}
	paid := order.Order{
		OrderLine: reservation.OrderLine{OrderSn: "n", BuyerID: "7", Quantity: 2}, Amount: 0,
		Status: order.Paid, FailureReason: order.FailedLost,
	}
	at := time.Date(2026, 11, 11, 12, 0, 3, 7_654_321, time.FixedZone("", 3600))
	ofOrders := map[event.Type]string{
		event.OrderFailed: "failed", event.OrderCreated: "created", event.OrderPaid: "paid",
		event.OrderCancelled: "cancelled", event.OrderExpired: "expired",
		event.OrderShipped: "paid",
	}
	for kind, status := range ofOrders {
		data := `"status":"` + status + `","title":"A phone","externalId":"SKU-7",` +
			`"currency":"CNY","buyerId":"7","quantity":2,"amount":0`
		if kind == event.OrderFailed {
			data += `,"failureReason":"LOST"`
		}
		requireItem(t, event.Event{Position: 3, Type: kind, At: at, Sale: sale, Order: paid},
			`"goodsId":"5","orderSn":"n","data":{`+data+`}`)
	}
	sale.Details = seckill.Details{Currency: "EUR"}
	ofSales := map[event.Type]string{
		event.SaleExposed: "exposed", event.SaleSoldOut: "exposed", event.SaleClosed: "closed",
	}
	for kind, status := range ofSales {
		requireItem(t, event.Event{Position: 3, Type: kind, At: at, Sale: sale},
			`"goodsId":"5","data":{"status":"`+status+`","title":"A phone","currency":"EUR",`+
				`"total":9}`)
	}
	require.ElementsMatch(t, event.Types(),
		slices.AppendSeq(slices.Collect(maps.Keys(ofOrders)), maps.Keys(ofSales)))
}

func requireItem(t *testing.T, e event.Event, rest string) {
	t.Helper()
	want := `{"id":"3","type":"` + string(e.Type) + `","timestamp":"2026-11-11T11:00:03.007Z",` +
		rest + `}`
	feed := event.Feed{Store: stored{e}, Currency: "CNY"}
	items := must.Get(feed.Items(t.Context(), event.Filter{}, 1))(t)
	require.Equal(t, "["+want+"]", string(must.Get(json.Marshal(items))(t)))
}
