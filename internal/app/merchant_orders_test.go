package app_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

const address = `{"name":"Ann Lee","phone":"+44 20 7946 0000","email":"ann@example.org",` +
	`"line1":"1 High Street","city":"London","postalCode":"SW1A 1AA","country":"GB"}`

type shownOrder struct {
	OrderSn, Status, Name, PhoneNumber, Carrier, TrackingNumber, ShippedAt string
	Shipping                                                               map[string]string
}

// finds returns what a caller finds by an order's number.
func (h *fixture) finds(who seckill.Actor, sn string) []shownOrder {
	r := h.does(who, "GET", "/admin/orders?orderSn="+sn, "")
	return dataOf[struct{ Items []shownOrder }](h.t, r).Items
}

// TestMerchantOrders_AreShippedOrRefunded goes the way of two orders after they are won.
func TestMerchantOrders_AreShippedOrRefunded(t *testing.T) {
	h := open(t)
	goods := h.exposed("5", "2")
	ann := buyer(1)
	ann.Name, ann.Phone = "Ann Lee", "+4479460123456"
	sent, returned := h.buys(ann, goods, "1"), h.buys(buyer(2), goods, "2")

	r := h.does(ann, "PUT", "/orders/"+sent+"/shipping", address)
	require.Contains(t, r.Body, `"shipping":`+address)
	require.NotContains(t, h.everything(), "High Street", "addresses are encrypted at rest")
	require.NotContains(t, h.does(ann, "GET", "/orders", "").Body, "shipping", "lists have none")
	require.Contains(t, h.does(ann, "GET", "/orders/"+sent, "").Body, address)

	found := h.finds(merchant(), sent)
	require.Len(t, found, 1)
	require.Equal(t, "A***", found[0].Name)
	require.Nil(t, found[0].Shipping)
	require.Equal(t, found, h.finds(operator(), sent))
	require.Empty(t, h.finds(seckill.Actor{ID: "71", Role: seckill.Merchant}, sent))
	require.Empty(t, h.finds(merchant(), "1EEXyA6kX5DImvF3RmLG3ut70d5BWO7olDv"))
	end := sent[len(sent)-8:]
	for _, short := range []string{
		end, end[:4] + "-" + end[4:], strings.ToLower(end), strings.ToUpper(end),
	} {
		require.Equal(t, found, h.finds(merchant(), short),
			"buyers see and say the end of the number")
		require.Equal(t, found, h.finds(operator(), short))
		require.Empty(t, h.finds(seckill.Actor{ID: "71", Role: seckill.Merchant}, short))
	}
	require.Empty(t, h.finds(merchant(), sent[:8]), "the beginning is no short number")

	whole := dataOf[shownOrder](t, h.does(merchant(), "POST", "/admin/orders/"+sent+"/reveal", ""))
	require.Equal(t, "Ann Lee", whole.Name)
	require.Equal(t, "+4479460123456", whole.PhoneNumber)
	require.Equal(t, "1 High Street", whole.Shipping["line1"])

	ship := "/admin/orders/" + sent + "/ship"
	h.refuses("CONFLICT", merchant(), "POST", ship, `{"carrier":"UPS"}`)
	for _, sn := range []string{sent, returned} {
		h.refuses("CONFLICT", merchant(), "POST", "/admin/orders/"+sn+"/refund", "")
	}
	h.does(ann, "POST", "/orders/"+sent+"/pay", "")
	h.does(buyer(2), "POST", "/orders/"+returned+"/pay", "")
	h.refuses("CONFLICT", merchant(), "POST", "/admin/orders/"+sent+"/cancel", "")
	h.does(merchant(), "POST", ship, `{"carrier":"UPS","trackingNumber":"1Z 9"}`)
	r = h.does(ann, "GET", "/orders/"+sent, "")
	require.Contains(t, r.Body, `"carrier":"UPS","trackingNumber":"1Z 9"`)
	h.refuses("CONFLICT", merchant(), "POST", "/admin/orders/"+sent+"/refund", "")
	h.refuses("CONFLICT", ann, "PUT", "/orders/"+sent+"/shipping", address)
	h.does(merchant(), "GET", "/admin/sales/"+goods+"/orders", "")
	h.refuses("FORBIDDEN", ann, "GET", "/admin/sales/"+goods+"/orders?format=csv", "")
	r = h.does(merchant(), "GET", "/admin/sales/"+goods+"/orders?format=csv", "")
	require.Contains(t, r.Body,
		`,UPS,1Z 9,Ann Lee,'+44 20 7946 0000,ann@example.org,1 High Street,,`+
			`London,SW1A 1AA,GB,`)

	for range 2 {
		h.does(merchant(), "POST", "/admin/orders/"+returned+"/refund", "")
	}
	h.becomes(buyer(2), returned, "cancelled")
	h.exact(goods, 5, 4, 1)
	h.eventually(func() bool {
		h.bank.mu.Lock()
		defer h.bank.mu.Unlock()
		return len(h.bank.refunds) == 1
	}, "the money was not returned")
	h.refuses("CONFLICT", buyer(2), "PUT", "/orders/"+returned+"/shipping", address)
	again := h.buys(buyer(2), goods, "2")
	h.does(operator(), "POST", "/admin/orders/"+again+"/cancel", "")
	h.exact(goods, 5, 4, 1)

	log := h.does(merchant(), "GET", "/admin/sales/"+goods+"/audit", "").Body
	for _, action := range []string{
		"revealOrder", "shipOrder", "exportOrders", "refundOrder", "cancelOrder",
	} {
		require.Equal(t, 1, strings.Count(log, `"action":"`+action+`"`), action)
	}
}

// TestMerchantOrders_RefusesBadFields names each wrong field of an address and of a shipment, and
// changes nothing.
func TestMerchantOrders_RefusesBadFields(t *testing.T) {
	h := open(t)
	sn := h.buys(buyer(1), h.exposed("5", "2"), "1")
	for body, fields := range map[string]string{
		`{}`: "name line1 city country",
		`{"name":" ","line1":"","city":"\u0007","country":"DEU"}`:                        "name line1 city country",
		strings.Replace(address, "GB", "gb", 1):                                          "country",
		strings.Replace(address, "GB", "ZZ", 1):                                          "country",
		strings.Replace(address, "GB", "EU", 1):                                          "country",
		strings.Replace(address, "GB", "UK", 1):                                          "country",
		strings.Replace(address, "ann@", "Ann <ann@", 1):                                 "email",
		strings.Replace(address, "+44 20", "call me", 1):                                 "phone",
		strings.Replace(address, "SW1A 1AA", strings.Repeat("0", 21), 1):                 "postalCode",
		strings.Replace(address, "}", `,"note":"`+strings.Repeat("n", 501)+`"}`, 1):      "note",
		strings.Replace(address, "}", `,"line2":"`+strings.Repeat("é", 201)+`"}`, 1):     "line2",
		strings.Replace(address, "}", `,"street":"x"}`, 1):                               "street",
		strings.Replace(address, `"London"`, `7`, 1):                                     "city",
		strings.Replace(address, `"name":"Ann Lee"`, `"name":{"first":"Ann"}`, 1):        "name",
		strings.Replace(address, `"Ann Lee"`, `"`+strings.Repeat("a", 101)+`"`, 1):       "name",
		strings.Replace(address, `"1 High Street"`, `"`+strings.Repeat("a", 201)+`"`, 1): "line1",
	} {
		r := h.refuses("BAD_REQUEST", buyer(1), "PUT", "/orders/"+sn+"/shipping", body)
		data := dataOf[struct {
			Field  string
			Errors []struct{ Field string }
		}](t, r)
		var named []string
		for _, problem := range data.Errors {
			named = append(named, problem.Field)
		}
		require.Equal(t, fields, strings.Join(named, " "), body)
		require.Equal(t, named[0], data.Field)
	}
	for body, field := range map[string]string{
		`{}`:             "carrier",
		`{"carrier":""}`: "carrier",
		`{"carrier":7}`:  "carrier",
		`{"carrier":"` + strings.Repeat("c", 65) + `"}`:                       "carrier",
		`{"carrier":"a\nb"}`:                                                  "carrier",
		`{"carrier":"a","trackingNumber":"` + strings.Repeat("t", 129) + `"}`: "trackingNumber",
		`{"carrier":"a","trackingNumber":null}`:                               "trackingNumber",
	} {
		r := h.refuses("BAD_REQUEST", merchant(), "POST", "/admin/orders/"+sn+"/ship", body)
		require.Contains(t, r.Body, `"field":"`+field+`"`, body)
	}
	h.refuses("BAD_REQUEST", merchant(), "GET", "/admin/orders", "")
	h.refuses("BAD_REQUEST", merchant(), "GET", "/admin/orders?orderSn=%20", "")
	h.refuses("NOT_FOUND", buyer(1), "PUT", "/orders/a.b/shipping", address)
	require.NotContains(t, h.does(buyer(1), "GET", "/orders/"+sn, "").Body, "shipping")
}
