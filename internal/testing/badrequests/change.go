package badrequests

import (
	"strings"

	"flashsale.dev/seckill/internal/seckill"
)

// changes are what PATCH must refuse: of the fields of a new sale the same, and what only it has.
func (t *table) changes() {
	c := call{method: "PATCH", target: "/admin/sales/" + t.goods, who: t.merchant}
	for field, values := range badSales() {
		for _, v := range values {
			if v == "" || field == "stock" {
				continue
			}
			c.body = `{"` + field + `":` + v + `}`
			if field != "endAt" || !endBeforeStart(v) {
				t.bad("change "+field+" "+v, c, field)
			}
		}
	}
	for _, v := range []string{"0", "null", "true", `"1"`, "1.5", "1e2", "[]", "9223372036854775808", "100000001", "-100000001", "-0"} {
		c.body = `{"stockDelta":` + v + `}`
		t.bad("change stockDelta "+v, c, "stockDelta")
	}
	for _, r := range badRates() {
		c.body = `{"rate":{` + r[0] + `}}`
		t.bad("change rate "+r[0], c, r[1])
	}
	for _, field := range []string{"stock", "merchantId", "goodsId", "status", "epoch", "total", "maxPerBuyerLimit"} {
		c.body = `{"` + field + `":1}`
		t.bad("mass assignment", c, field)
	}
	t.keys(c)
	c.body = `{"title":"x"}`
	t.add("an exposed sale's title", c, seckill.Conflict, 409, "")
	c.method, c.body = "DELETE", ""
	t.add("delete what is exposed", c, seckill.Conflict, 409, "")
}

// endBeforeStart are ends that are well-formed, and wrong for a start that a change leaves alone or not.
func endBeforeStart(v string) bool {
	return v == `"2026-11-11T12:00:00.000Z"` || v == `"2026-11-11T11:59:59Z"` || v == `"2026-11-11T13:00:00+02:00"`
}

// keys are Idempotency-Keys that are none.
func (t *table) keys(c call) {
	c.body = `{"perBuyerLimit":2}`
	for _, key := range [][]string{{""}, {`""`}, {"a", "b"}, {strings.Repeat("k", 256)}, {"é"}, {"a\tb"}} {
		t.bad("a key that is none", c, "Idempotency-Key")
		t.with("Idempotency-Key", key...)
	}
}
