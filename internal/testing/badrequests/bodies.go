package badrequests

import (
	"strings"
)

// bodies are troubles of the whole body and of its fields' names, over every call that a body may go to.
func (t *table) bodies() {
	for _, c := range append(t.calls(), call{"GET", "/sales", "", ""}, call{"GET", "/sales/" + t.goods, "", ""}) {
		t.bad("unknown in the query", join(c, "x=1"), "x")
		t.bad("unknown in the query, not UTF-8", join(c, "%ff=1"), "\uFFFD")
		t.bad("a semicolon in the query", join(c, "limit=1;cursor=2"), "query")
		c.body = `{"__proto__":1}`
		t.bad("unknown in the body", c, "__proto__")
		c.body = "{}" + strings.Repeat(" ", 1<<20)
		t.bad("a body of 1 MB", c, "body")
	}
	decr := call{"POST", "/" + t.Path + "/decrStock", t.buyer, ""}
	for what, b := range t.badBodies() {
		c := decr
		c.body = b[0]
		t.bad(what, c, b[1])
	}
	t.contentTypes(decr)
}

// badBodies are bodies of decrStock, each with the field that must be named.
func (t *table) badBodies() map[string][2]string {
	good := `{"goodsId":` + t.goods + `}`
	return map[string][2]string{
		"trailing object":        {good + good, "body"},
		"trailing text":          {good + "x", "body"},
		"trailing bracket":       {good + "}", "body"},
		"trailing NUL":           {good + "\x00", "body"},
		"a byte order mark":      {"\ufeff" + good, "body"},
		"an array":               {"[" + good + "]", "body"},
		"a string":               {`"x"`, "body"},
		"a number":               {"1", "body"},
		"null":                   {"null", "body"},
		"only spaces":            {"   ", "body"},
		"cut off":                {`{"goodsId":` + t.goods, "body"},
		"cut off in a name":      {`{"goods`, "body"},
		"single quotes":          {`{'goodsId':1}`, "body"},
		"a comment":              {`{/* */"goodsId":1}`, "body"},
		"a trailing comma":       {`{"goodsId":` + t.goods + `,}`, "body"},
		"leading zero":           {`{"goodsId":01}`, "body"},
		"NaN":                    {`{"goodsId":NaN}`, "goodsId"},
		"a name not UTF-8":       {"{\"goodsId\xff\":1}", "body"},
		"empty object":           {`{}`, "goodsId"},
		"another case":           {`{"GoodsId":` + t.goods + `}`, "GoodsId"},
		"goodsId doubled":        {`{"goodsId":` + t.goods + `,"goodsId":` + t.goods + `}`, "goodsId"},
		"goodsId doubled by \\u": {`{"goodsId":` + t.goods + `,"goods\u0049d":` + t.goods + `}`, "goodsId"},
		"decrStock doubled":      {`{"goodsId":` + t.goods + `,"decrStock":1,"decrStock":2}`, "decrStock"},
		"buyerId":                {`{"goodsId":` + t.goods + `,"buyerId":1}`, "buyerId"},
		"randomPath":             {`{"goodsId":` + t.goods + `,"randomPath":"x"}`, "randomPath"},
		"a long unknown name":    {`{"` + strings.Repeat("n", 100) + `":1}`, strings.Repeat("n", 64) + "…"},
		"CRLF in a name":         {`{"a\r\nb":1}`, "a\r\nb"},
		"deep nesting":           {`{"goodsId":` + strings.Repeat("[", 30000), "goodsId"},
		"deep unknown":           {strings.Repeat(`{"a":`, 10000), "a"},
		"64 KiB and a byte":      {good + strings.Repeat(" ", 64<<10+1-len(good)), "body"},
	}
}

func (t *table) contentTypes(decr call) {
	decr.body = `{"goodsId":` + t.goods + `}`
	for _, ct := range []string{
		"text/plain", "text/json", "application/xml", "application/json; charset=latin1", "application/json, text/plain",
		"multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "json", "", "application/json; charset",
	} {
		t.bad("Content-Type "+ct, decr, "Content-Type")
		t.with("Content-Type", ct)
	}
	t.bad("two Content-Types", decr, "Content-Type")
	t.with("Content-Type", "application/json", "application/json")
	t.bad("compressed", decr, "Content-Encoding")
	t.with("Content-Encoding", "gzip")
	t.bad("in query and body", join(decr, "goodsId="+t.goods), "goodsId")
	t.bad("doubled in the query", call{"POST", "/randomPath?goodsId=" + t.goods + "&goodsId=" + t.goods, t.buyer, ""}, "goodsId")
	decr.body = "goodsId=" + t.goods + "&goodsId=" + t.goods
	t.bad("doubled in the form", decr, "goodsId")
	t.with("Content-Type", "application/x-www-form-urlencoded")
}
