package badrequests

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// An id of each kind that nothing has.
const (
	noUUID    = "01a1fc15-9a10-78e6-83a6-b45fac893a06"
	noPayment = "pi_3NirD82eZvKYlo2CIvbtLWuY"
	noKey     = "03e6ljtc01o0165tf0uifev8fc"
)

// otherCalls returns calls of shops' back ends, of operators and of waiting rooms. What most of
// them name does not exist: their fields are checked first.
func (t *table) otherCalls() []call {
	order, hook := "/admin/orders/"+t.OrderSn, "/admin/webhooks/"+noUUID
	room, limiter := "/sales/"+t.goods+"/waiting-room", "/admin/limiters/randomPath/"+t.goods
	return []call{
		get(room, ""), post(room, t.buyer, "{}"), get(room+"/me", t.buyer),
		{http.MethodDelete, room + "/me", t.buyer, ""},
		get(room+"/me/events", t.buyer),
		get("/orders/"+t.OrderSn+"/events", t.buyer),
		get("/admin/orders?orderSn="+t.OrderSn, t.merchant), post(order+"/cancel", t.merchant),
		post(order+"/refund", t.merchant), post(order+"/reveal", t.merchant),
		post(order+"/ship", t.merchant, `{"carrier":"UPS"}`), get("/admin/events", t.merchant),
		get("/admin/audit", t.merchant),
		post("/admin/webhooks", t.merchant, `{"url":"https://example.org/"}`),
		get("/admin/webhooks", t.merchant), get(hook, t.merchant),
		{http.MethodDelete, hook, t.merchant, ""},
		{http.MethodPatch, hook, t.merchant, `{"maxBatch":1}`},
		get(hook+"/deliveries", t.merchant),
		post(hook+"/deliveries/"+noUUID+"/retry", t.merchant),
		{http.MethodDelete, "/admin/api-keys/" + noKey, t.merchant, ""},
		get("/admin/rebuilds", t.operator), get("/admin/limiters", t.operator), get(limiter, t.operator),
		{http.MethodPut, limiter, t.operator, `{"permitsPerSecond":9}`},
		{http.MethodPatch, limiter, t.operator, `{"permitsPerSecond":9}`},
		{http.MethodDelete, limiter, t.operator, ""},
		get("/admin/dead-letters", t.operator),
		post("/admin/dead-letters/"+noUUID+"/requeue", t.operator),
		{http.MethodDelete, "/admin/dead-letters/" + noUUID, t.operator, ""},
		get("/admin/refunds", t.operator), post("/admin/refunds/"+noPayment+"/retry", t.operator),
		post("/admin/refunds/"+noPayment+"/settle", t.operator, `{"note":"x"}`),
	}
}

// backOffice adds bad values of the fields of otherCalls.
func (t *table) backOffice() {
	wrong := []string{"null", "true", "{}", "[]", "1", `"\ud800"`, "\"\xff\""}
	number := []string{
		"null", "true", "{}", "[]", `"1"`, "0", "-1", "1.5", "1e2",
		"9223372036854775808",
	}
	float := []string{"null", "true", `"1"`, "1e999", "[]", "{}"}
	whole := []string{"null", "true", `"1"`, "1.5", "[]", "{}", "9223372036854775808"}
	ship := post("/admin/orders/"+t.OrderSn+"/ship", t.merchant)
	hook := post("/admin/webhooks", t.merchant)
	patch := call{http.MethodPatch, "/admin/webhooks/" + noUUID, t.merchant, ""}
	limiter := call{http.MethodPut, "/admin/limiters/randomPath/" + t.goods, t.operator, ""}
	for _, c := range []struct {
		call
		field, others string
		values        []string
	}{
		{ship, "carrier", "", append([]string{`""`, text(65), `"a\u0000"`}, wrong...)},
		{ship, "trackingNumber", `"carrier":"UPS"`, append([]string{text(129), `"a\nb"`}, wrong...)},
		{
			post("/admin/refunds/"+noPayment+"/settle", t.operator), "note", "",
			append([]string{text(201), `"a\nb"`}, wrong...),
		},
		{hook, "url", "", append(badURLs(), wrong...)},
		{patch, "url", "", append(badURLs(), wrong...)},
		{hook, "eventTypes", `"url":"https://example.org/"`, []string{
			"null", "{}", "1", `"order.paid"`, `["order"]`, `["ORDER.PAID"]`, `[1]`, `[null]`, `[""]`,
			`["order.paid,order.created"]`, `[["order.paid"]]`,
		}},
		{hook, "maxBatch", `"url":"https://example.org/"`, append([]string{"501"}, number...)},
		{hook, "maxPerSecond", `"url":"https://example.org/"`, append([]string{"101"}, number...)},
		{patch, "eventTypes", "", []string{"null", "{}", "1", `"order.paid"`, `["order"]`, `[null]`}},
		{patch, "maxBatch", "", append([]string{"501"}, number...)},
		{patch, "maxPerSecond", "", append([]string{"101"}, number...)},
		{patch, "enabled", "", []string{"null", "1", `"true"`, "[]", "{}"}},
		{patch, "rotateSecret", "", []string{"null", "1", `"true"`, "[]", "{}"}},
		{limiter, "permitsPerSecond", "", []string{"null", "true", `"1"`, "-1", "1e999", "[]", "{}"}},
		{limiter, "algorithm", "", append([]string{`"bucket"`, `""`}, wrong...)},
		{limiter, "burst", "", whole},
		{limiter, "nodelay", "", []string{"null", "1", `"true"`, "[]"}},
		{limiter, "maxBurstSeconds", "", float},
		{limiter, "intervalSeconds", "", float},
		{limiter, "warmupSeconds", "", float},
		{limiter, "coldFactor", "", float},
		{limiter, "maxWaitMillis", "", whole},
		{limiter, "delay", "", whole},
		{limiter, "limit", "", whole},
		{limiter, "parts", "", whole},
	} {
		for _, v := range c.values {
			others := c.others
			if others != "" {
				others += ","
			}
			c.body = fmt.Sprintf("{%s%q:%s}", others, c.field, v)
			t.bad(fmt.Sprintf("%s %.40s", c.field, v), c.call, c.field)
		}
	}
	for _, v := range append(nasty(), "", "cs_x") {
		t.bad("orderSn "+v, get("/admin/orders?orderSn="+url.QueryEscape(v), t.merchant), "orderSn")
	}
	t.bad("no orderSn", get("/admin/orders", t.merchant), "orderSn")
	for _, v := range []string{"-1", "x", "1.5", "9223372036854775808", "", "0x1", "１"} {
		t.bad("after "+v, get("/admin/events?after="+url.QueryEscape(v), t.merchant), "after")
	}
	t.bad("state", get("/admin/webhooks/"+noUUID+"/deliveries?state=gone", t.merchant), "state")
	t.bad("action", get("/admin/audit?action=gone", t.merchant), "action")
	for _, v := range badIDs() {
		t.bad("goodsId "+v, get("/admin/audit?goodsId="+url.QueryEscape(v), t.merchant), "goodsId")
	}
	for _, c := range []call{
		get("/admin/webhooks", t.merchant), get("/admin/refunds", t.operator),
		get("/admin/dead-letters", t.operator), get("/admin/audit", t.merchant),
		get("/admin/rebuilds", t.operator), get("/admin/api-keys", t.merchant),
		get("/admin/limiters", t.operator), get("/admin/sales/"+t.goods+"/audit", t.merchant),
		get("/admin/webhooks/"+noUUID+"/deliveries", t.merchant),
	} {
		for _, v := range []string{"", "0", "MQ", "bm90LWEtdXVpZA", "ZDAxYTFmYzE1", "not a cursor"} {
			t.bad("cursor "+v, join(c, "cursor="+url.QueryEscape(v)), "cursor")
		}
		t.bad("limit", join(c, "limit=101"), "limit")
	}
	for _, c := range slices.DeleteFunc(t.otherCalls(), func(c call) bool {
		return !strings.Contains(c.target, noUUID) && !strings.Contains(c.target, noPayment) &&
			!strings.Contains(c.target, noKey)
	}) {
		t.missing("does not exist", c)
	}
}

// badURLs are addresses that no webhook may have.
func badURLs() []string {
	all := []string{`""`, `"https://` + strings.Repeat("a", 2100) + `.example/"`}
	for _, u := range []string{
		"example.org", "http://example.org/", "ftp://example.org/", "https://", "https:///x",
		"https://user:secret@example.org/", "https://127.0.0.1/", "https://localhost/",
		"https://10.0.0.1/", "https://192.168.1.1:8443/", "https://169.254.169.254/latest/",
		"https://[::1]/", "https://[::ffff:127.0.0.1]/", "https://[::ffff:7f00:1]/",
		"https://[fd00::1]/", "https://[fe80::1%25eth0]/", "https://[64:ff9b::7f00:1]/",
		"https://0.0.0.0/", "https://[::]/", "https://100.64.0.1/", "https://2130706433/",
		"https://0x7f.1/", "https://0177.0.0.1/", "https://127.1/", "https://printer.local/",
		"https://metadata.google.internal/", "javascript:alert(1)", "https://example.org/\n",
		"https://example.org:99999/", "//example.org/", "https://localhost./", "https://[::127.0.0.1]/",
		"https://[2002:7f00:1::]/", "https://224.0.0.1/", "https://255.255.255.255/",
	} {
		all = append(all, fmt.Sprintf("%q", u))
	}
	return all
}
