package badrequests

import (
	"fmt"
	"slices"
	"strings"
)

// bodies adds invalid bodies and field names for every call that reads a body.
func (t *table) bodies() {
	public := []call{get("/sales", ""), get("/sales/"+t.goods, ""), get("/openapi.yaml", "")}
	for _, c := range slices.Concat(t.calls(), t.otherCalls(), public) {
		t.fields(c)
		t.bad("unknown in the query", join(c, "x=1"), "x")
		t.bad("unknown in the query, not UTF-8", join(c, "%ff=1"), "\uFFFD")
		t.bad("a semicolon in the query", join(c, "limit=1;cursor=2"), "query")
		c.body = `{"__proto__":1}`
		t.bad("unknown in the body", c, "__proto__")
		c.body = "{}" + strings.Repeat(" ", 1<<20)
		t.bad("a body of 1 MB", c, "body")
	}
	decr := t.decr(t.buyer)
	for field, bodies := range badBodies() {
		for _, body := range bodies {
			decr.body = strings.ReplaceAll(body, "GOODS", t.goods)
			t.bad(fmt.Sprintf("a body %.40q", body), decr, field)
		}
	}
	good := `{"goodsId":` + t.goods + `}`
	decr.body = fmt.Sprintf("%-*s", 64<<10+1, good)
	t.bad("64 KiB and a byte", decr, "body")
	decr.body = good
	for _, contentType := range []string{
		"text/plain", "text/json", "application/xml", "application/json; charset=latin1",
		"application/json, text/plain", "multipart/form-data; boundary=x", formType, "json", "",
		"application/json; charset",
	} {
		t.bad("Content-Type "+contentType, decr, "Content-Type")
		t.with("Content-Type", contentType)
	}
	t.bad("two Content-Types", decr, "Content-Type")
	t.with("Content-Type", "application/json", "application/json")
	t.bad("compressed", decr, "Content-Encoding")
	t.with("Content-Encoding", "gzip")
	goods := "goodsId=" + t.goods
	t.bad("in query and body", join(decr, goods), "goodsId")
	t.bad("doubled in the query", post("/randomPath?"+goods+"&"+goods, t.buyer), "goodsId")
	t.form("doubled in the form", goods+"&"+goods, "goodsId")
}

// fields adds text that is not UTF-8 for each field that the document lists for a call.
func (t *table) fields(c call) {
	path, _, _ := strings.Cut(c.target, "?")
	query, body := t.document.Fields(c.method, path)
	for _, field := range query {
		with := c
		with.target = path + "?" + field + "=%ff"
		t.bad("not UTF-8 in the query", with, field)
	}
	for _, field := range body {
		c.body = "{\"" + field + "\":\"\xff\"}"
		t.bad("not UTF-8 in "+field, c, field)
	}
}

// badBodies returns bodies of decrStock by the field that the response must name.
func badBodies() map[string][]string {
	const good = `{"goodsId":GOODS}`
	with := func(members ...string) (bodies []string) {
		for _, m := range members {
			bodies = append(bodies, `{"goodsId":GOODS,`+m+`}`)
		}
		return bodies
	}
	return map[string][]string{
		"body": slices.Concat(with(""), []string{
			good + good, good + "x", good + "}", good + "\x00", "\ufeff" + good, "[" + good + "]",
			`"x"`, "1", "null", "   ", `{"goodsId":GOODS`, `{"goods`, `{'goodsId':1}`,
			`{/* */"goodsId":1}`, `{"goodsId":01}`, "{\"goodsId\xff\":1}",
		}),
		"goodsId": slices.Concat(with(`"goodsId":GOODS`, `"goods\u0049d":GOODS`), []string{
			`{"goodsId":NaN}`, `{}`, `{"goodsId":` + strings.Repeat("[", 30000),
		}),
		"GoodsId":                     {`{"GoodsId":GOODS}`},
		"decrStock":                   with(`"decrStock":1,"decrStock":2`),
		"buyerId":                     with(`"buyerId":1`),
		"randomPath":                  with(`"randomPath":"x"`),
		strings.Repeat("n", 64) + "…": {`{"` + strings.Repeat("n", 100) + `":1}`},
		"a\r\nb":                      {`{"a\r\nb":1}`},
		"a":                           {strings.Repeat(`{"a":`, 10000)},
	}
}
