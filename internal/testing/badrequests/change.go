package badrequests

import (
	"slices"
	"strings"

	"flashsale.dev/seckill/internal/apierror"
)

// changes adds requests that PATCH must refuse: bad values of a new sale's fields and of PATCH's
// own fields.
func (t *table) changes() {
	c := call{method: "PATCH", target: "/admin/sales/" + t.goods, who: t.merchant}
	for field, values := range badSales() {
		for _, v := range values {
			if v == "" || field == "stock" {
				continue
			}
			c.body = `{"` + field + `":` + v + `}`
			if !slices.Contains(earlyEnds(), v) {
				t.bad("change "+field+" "+v, c, field)
			}
		}
	}
	for _, v := range []string{
		"0", "null", "true", `"1"`, "1.5", "1e2", "[]", "9223372036854775808", "100000001",
		"-100000001", "-0",
	} {
		c.body = `{"stockDelta":` + v + `}`
		t.bad("change stockDelta "+v, c, "stockDelta")
	}
	t.rates("change rate", c, func(rate string) string { return `{"rate":` + rate + `}` })
	for _, field := range []string{
		"stock", "merchantId", "goodsId", "status", "epoch", "total", "maxPerBuyerLimit",
	} {
		c.body = `{"` + field + `":1}`
		t.bad("mass assignment", c, field)
	}
	t.keys(c)
	c.body = `{"title":"x"}`
	t.add("an exposed sale's title", c, apierror.Conflict, 409, "")
	c.method, c.body = "DELETE", ""
	t.add("delete what is exposed", c, apierror.Conflict, 409, "")
}

// keys adds malformed Idempotency-Keys.
func (t *table) keys(c call) {
	c.body = `{"perBuyerLimit":2}`
	for _, key := range [][]string{
		{""}, {`""`}, {"a", "b"}, {strings.Repeat("k", 256)}, {"é"}, {"a\tb"},
	} {
		t.bad("a malformed key", c, "Idempotency-Key")
		t.with("Idempotency-Key", key...)
	}
}
