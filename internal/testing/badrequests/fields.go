package badrequests

import (
	"net/url"
	"strings"
)

// nasty returns texts by which attackers try to inject headers, commands, SQL, paths or templates.
func nasty() []string {
	return []string{
		"1\r\nX-Evil: 1", "1\n2", "1\x00", "return redis.call('FLUSHALL')", "1' OR '1'='1",
		"1; DROP TABLE orders --", "../../etc/passwd", "{{7*7}}", "${jndi:ldap://x}", "<script>",
		"１", "\u202e1", strings.Repeat("9", 5000),
	}
}

// badIDs returns texts that are not valid ids in a path, a query or a JSON string.
func badIDs() []string {
	return append(nasty(), "0", "-1", "1.5", "1.0", "1e3", "1e20", "9223372036854775808",
		"18446744073709551617", "0x10", "0b1", "1_0", " 1", "1 ", "+1", "01", "-0", "abc", "null",
		"true", "NaN", "Inf", "1,2", "[1]")
}

// badJSONIDs returns JSON values that are not valid ids.
func badJSONIDs() []string {
	return []string{
		"0", "-1", "1.5", "1.0", "1e3", "1e20", "9223372036854775808", "-0", "true", "null", "[]",
		"{}", "[1]", `{"a":1}`, `""`, `"01"`, `"+1"`, `" 1"`, `"1.0"`, `"abc"`, `"1\r\n"`,
		`"\u0000"`, `"1'--"`, `"return 1"`, `"\ud800"`, "\"\xff\"", "\"\xc3\x28\"",
	}
}

func (t *table) identifiers() {
	decr := t.decr(t.buyer)
	for _, id := range badIDs() {
		if !strings.Contains(id, "/") { // a slash makes another route
			t.bad("goodsId "+id, get("/sales/"+escape(id), ""), "goodsId")
			for _, c := range t.saleCalls(escape(id))[:6] {
				t.bad("goodsId "+id, c, "goodsId")
			}
		}
		q := "goodsId=" + url.QueryEscape(id)
		t.bad("goodsId "+id, post("/randomPath?"+q, t.buyer), "goodsId")
		t.bad("goodsId "+id, join(decr, q), "goodsId")
		t.form("goodsId in a form "+id, q, "goodsId")
	}
	for _, v := range badJSONIDs() {
		body := `{"goodsId":` + v + `}`
		t.bad("goodsId "+v, post("/randomPath", t.buyer, body), "goodsId")
		decr.body = `{"decrStock":1,` + body[1:]
		t.bad("goodsId "+v, decr, "goodsId")
	}
	decr.body = `{"decrStock":1}`
	t.bad("no goodsId", decr, "goodsId")
	for _, query := range []string{"", "?goodsId=", "?goodsId", "?goodsId=%ff", "?goodsId=%zz"} {
		t.bad("bad or no goodsId", post("/randomPath"+query, t.buyer), "goodsId")
	}
}

func (t *table) quantities() {
	decr := t.decr(t.buyer)
	for _, q := range append(badIDs(), "1001", "", "100000000000") {
		fields := "goodsId=" + t.goods + "&decrStock=" + url.QueryEscape(q)
		t.bad("decrStock "+q, join(decr, fields), "decrStock")
		t.form("decrStock in a form "+q, fields, "decrStock")
	}
	for _, v := range append(badJSONIDs(), "1001", `"1"`, `"2"`) {
		decr.body = `{"goodsId":"` + t.goods + `","decrStock":` + v + `}`
		t.bad("decrStock "+v, decr, "decrStock")
	}
}

// codes adds access codes of wrong types. A wrong code of the right type is no bad request.
func (t *table) codes() {
	for _, v := range []string{
		"null", "true", "1", "[]", `["x"]`, "{}", `{"a":1}`, `"\ud800"`,
		"\"\xff\"",
	} {
		t.bad("code "+v, post("/randomPath", t.buyer, `{"goodsId":`+t.goods+`,"code":`+v+`}`), "code")
		t.bad("code "+v, post("/sales/"+t.goods+"/waiting-room", t.buyer, `{"code":`+v+`}`), "code")
	}
	t.bad("code not UTF-8", post("/randomPath?goodsId="+t.goods+"&code=%ff", t.buyer), "code")
	t.bad("long ticket", post("/sales/"+t.goods+"/waiting-room", t.buyer,
		`{"ticket":"`+strings.Repeat("1", 201)+`"}`), "ticket")
	t.bad("two codes", post("/randomPath?goodsId="+t.goods+"&code=x&code=x", t.buyer), "code")
}

func (t *table) pages() {
	orders := get("/admin/sales/"+t.goods+"/orders", t.merchant)
	for _, c := range []call{
		get("/sales", ""), get("/orders", t.buyer), get("/admin/sales", t.merchant), orders,
	} {
		for _, v := range append(badIDs(), "101", "") {
			t.bad("limit "+v, join(c, "limit="+url.QueryEscape(v)), "limit")
		}
		for _, v := range append(nasty(), "", "0", "AAAA", "MQ==", "not a cursor", "LTE") {
			t.bad("cursor "+v, join(c, "cursor="+url.QueryEscape(v)), "cursor")
		}
		t.bad("phase", join(get("/sales", ""), "phase=draft"), "phase")
		t.bad("limit doubled", join(c, "limit=1&limit=1"), "limit")
	}
	for _, v := range append(nasty(), "", "CREATED", "created,paid") {
		t.bad("status "+v, join(orders, "status="+url.QueryEscape(v)), "status")
	}
}
