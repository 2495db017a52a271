package app_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apikey"
	"flashsale.dev/seckill/internal/seckill"
)

// call is a route with the callers that may use it. Its order belongs to the test's buyer, its sale
// to the test's merchant.
type call struct {
	method, path, body string
	may                string       // of "buyer", "merchant", "operator"; "" for all
	scope              apikey.Scope // that an API key of the merchant needs; "": none may
}

const hook = `{"url":"https://example.org/events"}`

// TestRoutes_RefuseEveryWrongCaller calls every route that needs a token as each caller without the
// right to it. It runs on the real services.
func TestRoutes_RefuseEveryWrongCaller(t *testing.T) {
	h := open(t)
	goods := h.exposed("9", "2")
	sn := h.buys(buyer(1), goods, "1")
	_, deadLetter := h.dies(goods, 5, 1)
	h.bank.set(func(b *bank) { b.away = true })
	_, due := h.callback("p-1", sn, 1)
	require.Equal(t, "refunding", due.State)
	sale, own := "/admin/sales/"+goods, "/orders/"+sn
	webhook := "/admin/webhooks/" + dataOf[struct{ ID string }](t,
		h.as(merchant(), "POST", "/admin/webhooks", hook)).ID
	own70 := h.newKey(merchant().ID, apikey.SalesRead)
	calls := []call{
		{"GET", own, "", "buyer", ""},
		{"GET", own + "/events", "", "buyer", ""},
		{"POST", own + "/pay", "", "buyer", ""},
		{"POST", own + "/cancel", "", "buyer", ""},
		{"PUT", own + "/shipping", address, "buyer", ""},
		{"POST", "/admin/orders/" + sn + "/cancel", "", "merchant operator", apikey.OrdersWrite},
		{"POST", "/admin/orders/" + sn + "/refund", "", "merchant operator", apikey.OrdersWrite},
		{
			"POST", "/admin/orders/" + sn + "/ship", `{"carrier":"UPS"}`, "merchant operator",
			apikey.OrdersWrite,
		},
		{"POST", "/admin/orders/" + sn + "/reveal", "", "merchant operator", apikey.OrdersWrite},
		{"GET", "/admin/orders?orderSn=" + sn, "", "merchant operator another merchant " +
			"the buyer's number as a merchant", apikey.OrdersRead}, // each finds orders of own sales
		{
			"GET", "/admin/audit?goodsId=" + goods, "", "merchant operator", apikey.SalesRead,
		},
		{"GET", "/admin/audit", "", "merchant operator another merchant " +
			"the buyer's number as a merchant", apikey.SalesRead}, // each sees own entries
		{"GET", webhook, "", "merchant operator", apikey.WebhooksWrite},
		{"PATCH", webhook, `{"maxBatch":1}`, "merchant operator", apikey.WebhooksWrite},
		{"GET", webhook + "/deliveries", "", "merchant operator", apikey.WebhooksWrite},
		{
			"POST", webhook + "/deliveries/01a1fc15-9a10-78e6-83a6-b45fac893a06/retry", "",
			"merchant operator", apikey.WebhooksWrite,
		},
		{"DELETE", webhook, "", "merchant operator", apikey.WebhooksWrite},
		{"GET", "/admin/webhooks", "", "merchant operator another merchant " +
			"the buyer's number as a merchant", apikey.WebhooksWrite}, // each sees own ones
		{"GET", sale, "", "merchant operator", apikey.SalesRead},
		{"PATCH", sale, `{"perBuyerLimit":9}`, "merchant operator", apikey.SalesWrite},
		{"DELETE", sale, "", "merchant operator", apikey.SalesWrite},
		{"POST", sale + "/expose", "", "merchant operator", apikey.SalesWrite},
		{"POST", sale + "/close", "", "merchant operator", apikey.SalesWrite},
		{"GET", sale + "/ledger", "", "merchant operator", apikey.SalesRead},
		{"GET", sale + "/figures", "", "merchant operator", apikey.SalesRead},
		{"GET", sale + "/events", "", "merchant operator", apikey.SalesRead},
		{"GET", sale + "/orders", "", "merchant operator", apikey.OrdersRead},
		{"GET", sale + "/orders?format=csv", "", "merchant operator", apikey.OrdersRead},
		{"GET", sale + "/audit", "", "merchant operator", apikey.SalesRead},
		{"GET", "/admin/events", "", "merchant operator another merchant " +
			"the buyer's number as a merchant", apikey.OrdersRead}, // each sees events of own sales
		{
			"POST", "/admin/api-keys", `{"name":"x","scopes":["sales:read"],"merchantId":"70"}`,
			"merchant operator", "",
		},
		{"GET", "/admin/api-keys?merchantId=70", "", "merchant operator", ""},
		{"DELETE", "/admin/api-keys/" + own70.ID, "", "merchant operator", ""},
		{"GET", "/admin/dead-letters", "", "operator", ""},
		{"POST", "/admin/dead-letters/" + deadLetter + "/requeue", "", "operator", ""},
		{"DELETE", "/admin/dead-letters/" + deadLetter, "", "operator", ""},
		{"GET", "/admin/rebuilds", "", "operator", ""},
		{"GET", "/admin/refunds", "", "operator", ""},
		{"POST", "/admin/refunds/p-1/retry", "", "operator", ""},
		{"POST", "/admin/refunds/p-1/settle", `{"note":"x"}`, "operator", ""},
		{"GET", "/admin/limiters", "", "operator", ""},
		{"GET", "/admin/limiters/randomPath/" + goods, "", "operator", ""},
		{"PUT", "/admin/limiters/randomPath/" + goods, `{"permitsPerSecond":1}`, "operator", ""},
		{"PATCH", "/admin/limiters/randomPath/" + goods, `{"permitsPerSecond":1}`, "operator", ""},
		{"DELETE", "/admin/limiters/randomPath/" + goods, "", "operator", ""},
	}
	people := map[string]seckill.Actor{
		"another buyer": buyer(2), "another merchant": {ID: "71", Role: seckill.Merchant},
		"the buyer's number as a merchant": {ID: "1", Role: seckill.Merchant},
		"the merchant's number as a buyer": {ID: merchant().ID, Role: seckill.Buyer},
		"buyer":                            buyer(1), "merchant": merchant(),
		"operator": operator(),
	}
	keys, all := map[string]string{}, apikey.Scopes()
	for i, s := range all {
		keys[string(s)] = h.newKey(merchant().ID, s).text
		others := slices.Delete(slices.Clone(all), i, i+1)
		keys[strings.Trim(fmt.Sprint(others), "[]")] = h.newKey(merchant().ID, others...).text
	}
	foreign := h.newKey("71", all...).text
	for _, c := range calls {
		h.refuses("UNAUTHENTICATED", seckill.Actor{}, c.method, c.path, c.body)
		bad := h.as(seckill.Actor{}, c.method, c.path, c.body, "Authorization",
			"Bearer e30.e30.e30")
		require.Equal(t, "UNAUTHENTICATED", bad.Reason, "%s %s", c.method, c.path)
		for name, key := range keys {
			if c.scope == "" || !strings.Contains(" "+name+" ", " "+string(c.scope)+" ") {
				r := h.with(key, c.method, c.path, c.body)
				require.Equal(t, "FORBIDDEN", r.Reason, "%s %s with %s", c.method, c.path, name)
				require.Contains(t, r.Body, cmp.Or(string(c.scope), "an API key may not do this"))
			}
		}
		if !strings.Contains(c.may, "another merchant") { // where each sees what is theirs
			r := h.with(foreign, c.method, c.path, c.body)
			require.Equal(t, "FORBIDDEN", r.Reason, "%s %s as another merchant", c.method, c.path)
		}
		for name, who := range people {
			if !strings.Contains(" "+c.may+" ", " "+name+" ") {
				h.refuses("FORBIDDEN", who, c.method, c.path, c.body)
			}
		}
	}
	h.refuses("NOT_FOUND", merchant(), "GET", "/admin/sales/44/events", "")
	h.refuses("NOT_FOUND", buyer(1), "POST", "/admin/refunds/p-2/retry", "")
	h.refuses("NOT_FOUND", merchant(), "POST", "/admin/refunds/p-2/settle", `{"note":"x"}`)
	h.refuses("FORBIDDEN", merchant(), "GET", "/orders", "")
	for name, who := range people { // only the payment provider's signature counts
		r := h.as(who, "POST", "/payments/callback",
			`{"paymentId":"p","orderSn":"`+sn+`","amount":1999}`)
		require.Equal(t, "UNAUTHENTICATED", r.Reason, "%s: %s", name, r.Body)
	}
	h.refuses("FORBIDDEN", buyer(1), "GET", "/admin/sales", "")
	h.refuses("FORBIDDEN", buyer(1), "POST", "/admin/webhooks", hook)
	h.refuses("UNAUTHENTICATED", seckill.Actor{}, "POST", "/admin/webhooks", hook)
	h.refuses("FORBIDDEN", merchant(), "POST", "/randomPath?goodsId="+goods, "")
	h.becomes(buyer(1), sn, "created")
	require.Len(t, h.deadLetters(), 1, "a refused call changed the dead letters")
}
