package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// narrow is the narrowest phone that the pages support.
var narrow = device{
	name: "narrow phone", width: 320, height: 640, scale: 2, phone: true, language: "en-GB",
}

// won buys units through the API, waits until the order is written, and returns its number.
func (h fixture) won(t testing.TB, buyer int64, goods string, quantity int) string {
	t.Helper()
	api := h.client(t, seckill.Buyer, buyer)
	var path struct{ RandomPath string }
	require.NoError(t, api.Do(t.Context(), "POST", "/randomPath?goodsId="+goods, nil, &path))
	var bought struct{ OrderSn string }
	body := map[string]any{"goodsId": goods, "decrStock": quantity}
	require.NoError(t, api.Do(t.Context(), "POST", "/"+path.RandomPath+"/decrStock", body, &bought))
	require.Eventually(t, func() bool {
		var o struct{ Status string }
		err := api.Do(t.Context(), "GET", "/orders/"+bought.OrderSn, nil, &o)
		return err == nil && o.Status == "created"
	}, time.Minute, 20*time.Millisecond)
	return bought.OrderSn
}

// TestOrders_AreFoundShippedCancelledAndRefunded goes a merchant's way through three orders: one is
// shipped, one cancelled and one refunded.
func TestOrders_AreFoundShippedCancelledAndRefunded(t *testing.T) {
	t.Parallel()
	h := standalone(t)
	for i, d := range []device{desktop, narrow.at(true)} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			managesOrders(t, h, d, int64(100+10*i))
		})
	}
}

// managesOrders is a merchant's work with the orders of three buyers, from the id first on.
func managesOrders(t *testing.T, h fixture, d device, first int64) {
	goods := h.sells(t, sale{title: kettle, price: 5000, stock: 20, perBuyer: 5})
	shipped, dropped, returned := h.won(t, first, goods, 2), h.won(t, first+1, goods, 1),
		h.won(t, first+2, goods, 1)
	address := map[string]string{
		"name": "Ann Lee", "line1": "1 High Street", "city": "London", "country": "GB",
	}
	buyer := h.client(t, seckill.Buyer, first)
	require.NoError(t, buyer.Do(t.Context(), "PUT", "/orders/"+shipped+"/shipping", address, nil))
	for buyer, sn := range map[int64]string{first: shipped, first + 2: returned} {
		api := h.client(t, seckill.Buyer, buyer)
		require.NoError(t, api.Do(t.Context(), "POST", "/orders/"+sn+"/pay", nil, nil))
	}

	mei := h.enters(t, d, seckill.Merchant, 1, "Mei")
	mei.findsOrder(shipped)
	mei.ships()
	mei.reveals(h, goods, shipped)
	mei.ends(dropped, "cancel", "The order is cancelled.", "Cancelled")
	mei.ends(returned, "refund", "The order is refunded.", "Refunded")

	mei.open("/console/sales/" + goods)
	mei.becomes("the title names the sale", `document.title.startsWith('`+kettle+` · Sale')`)
	mei.sees("#filter", "Cancelled (2)")
	mei.sees("#filter", "Paid (1)")
	mei.run(`Object.assign(document.getElementById('filter'), {value: 'paid'})
				.dispatchEvent(new Event('change'))`)
	mei.becomes("only the paid order", `document.querySelectorAll('#bought tr').length === 1`)
	mei.fitsEverybody("a sale with orders")
	mei.press("#bought .action")
	mei.becomes("copied or selected",
		`/Copied|selected/.test(document.querySelector('#bought [role=status]').innerText)`)
	mei.press("#bought a")
	mei.sees("#history", "Shipped")
}

// findsOrder searches in vain, and then for an order.
func (v *visitor) findsOrder(sn string) {
	v.t.Helper()
	v.open("/console")
	for typed, said := range map[string]string{
		"": "Please fill this in.", "a b": "An order number has", sn + "0": "None of your sales",
	} {
		v.fill("#find-sn", typed)
		v.press("#find button")
		v.sees("#w-find", said)
	}
	v.fitsEverybody("the search")
	end := sn[len(sn)-8:]
	for _, typed := range []string{strings.ToLower(end[:4]) + "-" + end[4:], " " + sn + " "} {
		v.open("/console")
		v.fill("#find-sn", typed)
		v.press("#find button")
		v.sees("#number", sn)
	}
	v.sees("#order", kettle)
	v.sees("#history", "Ordered")
}

// ships records a shipment, after one without a carrier.
func (v *visitor) ships() {
	v.t.Helper()
	v.press("[data-open=ship]")
	v.press("#ship button[value=yes]")
	v.sees("#w-carrier", "Please fill this in.")
	v.fitsEverybody("a shipment")
	v.fill("#s-carrier", "Royal Mail")
	v.fill("#s-number", strings.Repeat("JT12", 32))
	v.press("#ship button[value=yes]")
	v.sees("#say", "The shipment is recorded.")
	v.sees("#order .chip", "Shipped")
	v.sees("#details", "Royal Mail")
	require.False(v.t, v.is(`document.querySelector('[data-open=refund]').checkVisibility()`),
		"a shipped order has no refund here")
	v.fitsEverybody("a shipped order")
	v.light("an order")
}

// reveals shows the buyer's data, which the audit log records once.
func (v *visitor) reveals(h fixture, goods, sn string) {
	v.t.Helper()
	v.sees("#details", "Hidden until you show")
	require.NotContains(v.t, v.text("#details"), "+8613800000000")
	v.press("[data-open=reveal]")
	v.press("#reveal button[value=yes]")
	v.sees("#details", "1 High Street")
	v.sees("#details", "+8613800000000")
	v.fitsEverybody("a revealed order")
	var log struct {
		Items []struct {
			Action string
			To     map[string]any
		}
	}
	api := h.client(v.t, seckill.Merchant, 1)
	require.NoError(v.t, api.Do(v.t.Context(), "GET", "/admin/sales/"+goods+"/audit", nil, &log))
	require.Equal(v.t, "revealOrder", log.Items[0].Action)
	require.Equal(v.t, sn, log.Items[0].To["orderSn"])
}

// ends opens an order and ends it, after a first thought.
func (v *visitor) ends(sn, step, said, status string) {
	v.t.Helper()
	v.open("/console/orders/" + sn)
	v.press("[data-open=" + step + "]")
	v.press("#" + step + " [data-close]")
	v.press("[data-open=" + step + "]")
	v.press("#" + step + " button[value=yes]")
	v.sees("#say", said)
	v.sees("#order .chip", status)
	v.sees("#history", status)
}

// TestOrders_RefusedStepShowsTheOrder lets a buyer pay while the merchant cancels.
func TestOrders_RefusedStepShowsTheOrder(t *testing.T) {
	t.Parallel()
	h := standalone(t)
	goods := h.sells(t, sale{title: kettle})
	sn := h.won(t, 5, goods, 1)
	mei := h.enters(t, desktop, seckill.Merchant, 1, "Mei")
	mei.open("/console/orders/" + sn)
	mei.press("[data-open=cancel]")
	api := h.client(t, seckill.Buyer, 5)
	require.NoError(t, api.Do(t.Context(), "POST", "/orders/"+sn+"/pay", nil, nil))
	mei.press("#cancel button[value=yes]")
	mei.sees("#cancel .say", "The order’s state does not allow this. It is now: Paid.")
	mei.press("#cancel [data-close]")
	mei.sees("#order .chip", "Paid")

	other := h.enters(t, desktop, seckill.Merchant, 2, "Bo")
	other.open("/console/orders/" + sn)
	other.sees("#say", "None of your sales has an order with this number.")
	other.fits("an order of another merchant")
}
