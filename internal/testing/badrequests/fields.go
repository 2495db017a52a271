package badrequests

import (
	"net/url"
	"strings"
)

// nasty are strings that somebody may try on any field.
func nasty() []string {
	return []string{
		"1\r\nX-Evil: 1", "1\n2", "1\x00", "return redis.call('FLUSHALL')", "1' OR '1'='1", "1; DROP TABLE orders --",
		"../../etc/passwd", "{{7*7}}", "${jndi:ldap://x}", "<script>", "１", "\u202e1", strings.Repeat("9", 5000),
	}
}

// badIDs are texts that are no id: neither in a path, nor in a query, nor as a JSON string.
func badIDs() []string {
	return append(nasty(), "0", "-1", "1.5", "1.0", "1e3", "1e20", "9223372036854775808", "18446744073709551617",
		"0x10", "0b1", "1_0", " 1", "1 ", "+1", "01", "-0", "abc", "null", "true", "NaN", "Inf", "1,2", "[1]")
}

// badJSONIDs are JSON values that are no id.
func badJSONIDs() []string {
	return []string{
		"0", "-1", "1.5", "1.0", "1e3", "1e20", "9223372036854775808", "-0", "true", "null", "[]", "{}", "[1]", `{"a":1}`,
		`""`, `"01"`, `"+1"`, `" 1"`, `"1.0"`, `"abc"`, `"1\r\n"`, `"\u0000"`, `"1'--"`, `"return 1"`, `"\ud800"`, "\"\xff\"", "\"\xc3\x28\"",
	}
}

func (t *table) identifiers() {
	for _, id := range badIDs() {
		e := escape(id)
		if !strings.Contains(id, "/") { // else it is another route
			t.bad("goodsId "+id, call{"GET", "/sales/" + e, "", ""}, "goodsId")
			t.bad("goodsId "+id, call{"GET", "/admin/sales/" + e, t.merchant, ""}, "goodsId")
			t.bad("goodsId "+id, call{"POST", "/admin/sales/" + e + "/expose", t.merchant, ""}, "goodsId")
			t.bad("goodsId "+id, call{"POST", "/admin/sales/" + e + "/close", t.merchant, ""}, "goodsId")
			t.bad("goodsId "+id, call{"GET", "/admin/sales/" + e + "/ledger", t.merchant, ""}, "goodsId")
			t.bad("goodsId "+id, call{"GET", "/admin/sales/" + e + "/orders", t.merchant, ""}, "goodsId")
		}
		q := "goodsId=" + url.QueryEscape(id)
		t.bad("goodsId "+id, call{"POST", "/randomPath?" + q, t.buyer, ""}, "goodsId")
		t.bad("goodsId "+id, call{"POST", "/" + t.Path + "/decrStock?" + q, t.buyer, ""}, "goodsId")
		t.bad("goodsId in a form "+id, call{"POST", "/" + t.Path + "/decrStock", t.buyer, q}, "goodsId")
		t.with("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, v := range badJSONIDs() {
		t.bad("goodsId "+v, call{"POST", "/randomPath", t.buyer, `{"goodsId":` + v + `}`}, "goodsId")
		t.bad("goodsId "+v, call{"POST", "/" + t.Path + "/decrStock", t.buyer, `{"goodsId":` + v + `,"decrStock":1}`}, "goodsId")
	}
	for _, target := range []string{"/randomPath", "/randomPath?goodsId=", "/randomPath?goodsId", "/" + t.Path + "/decrStock?decrStock=1"} {
		t.bad("no goodsId", call{"POST", target, t.buyer, ""}, "goodsId")
	}
	t.bad("goodsId not UTF-8", call{"POST", "/randomPath?goodsId=%ff", t.buyer, ""}, "goodsId")
	t.bad("goodsId escaped badly", call{"POST", "/randomPath?goodsId=%zz", t.buyer, ""}, "goodsId")
}

func (t *table) quantities() {
	decr := call{"POST", "/" + t.Path + "/decrStock", t.buyer, ""}
	for _, q := range append(badIDs(), "1001", "", "100000000000") {
		t.bad("decrStock "+q, join(decr, "goodsId="+t.goods+"&decrStock="+url.QueryEscape(q)), "decrStock")
		form := decr
		form.body = "goodsId=" + t.goods + "&decrStock=" + url.QueryEscape(q)
		t.bad("decrStock in a form "+q, form, "decrStock")
		t.with("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, v := range append(badJSONIDs(), "1001", `"1"`, `"2"`) {
		c := decr
		c.body = `{"goodsId":"` + t.goods + `","decrStock":` + v + `}`
		t.bad("decrStock "+v, c, "decrStock")
	}
}

func (t *table) pages() {
	lists := []call{
		{"GET", "/sales", "", ""},
		{"GET", "/orders", t.buyer, ""},
		{"GET", "/admin/sales", t.merchant, ""},
		{"GET", "/admin/sales/" + t.goods + "/orders", t.merchant, ""},
	}
	for _, c := range lists {
		for _, v := range append(badIDs(), "101", "") {
			t.bad("limit "+v, join(c, "limit="+url.QueryEscape(v)), "limit")
		}
		for _, v := range append(nasty(), "", "0", "AAAA", "MQ==", "not a cursor", "LTE") {
			t.bad("cursor "+v, join(c, "cursor="+url.QueryEscape(v)), "cursor")
		}
		t.bad("limit doubled", join(c, "limit=1&limit=1"), "limit")
	}
	for _, v := range append(nasty(), "", "CREATED", "created,paid") {
		t.bad("status "+v, join(lists[3], "status="+url.QueryEscape(v)), "status")
	}
}
