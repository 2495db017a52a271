package badrequests

import (
	"fmt"
	"slices"
	"strings"
)

// NewSale is the JSON of a good new sale with one field set to a JSON value, or left out where it is "".
func NewSale(name, value string) string {
	fields := [][2]string{
		{"title", `"A phone"`},
		{"price", "199900"},
		{"stock", "10"},
		{"startAt", `"2026-11-11T12:00:00.000Z"`},
		{"endAt", `"2099-11-11T14:00:00+02:00"`},
	}
	var members []string
	found := false
	for _, f := range fields {
		if f[0] == name {
			f[1], found = value, true
		}
		if f[1] != "" {
			members = append(members, fmt.Sprintf("%q:%s", f[0], f[1]))
		}
	}
	if !found && value != "" {
		members = append(members, fmt.Sprintf("%q:%s", name, value))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// badSales are the values that each field of a new sale must refuse; "" is leaving it out.
func badSales() map[string][]string {
	wrong := []string{"null", "true", "[]", "{}"}
	whole := slices.Concat(wrong, []string{"-1", "1.5", "1.0", "1e2", "1e20", "9223372036854775808", `"1"`, `"x"`, "-0"})
	title := slices.Concat(wrong, []string{"", "1", `""`, `"   "`, `"` + strings.Repeat("é", 121) + `"`, `"a\r\nb"`, `"a\u0000"`, `"\u001b[2J"`, `"\ud800"`, "\"\xff\""})
	moment := slices.Concat(wrong, []string{
		"", "0", "1794398400", `""`, `"now"`, `"2026-11-11"`, `"2026-11-11T12:00:00"`, `"2026-11-11 12:00:00Z"`,
		`"2026-13-11T12:00:00Z"`, `"2026-02-30T12:00:00Z"`, `"2026-11-11T25:00:00Z"`, `"2026-11-11T1:00:00Z"`, `"2026-11-11T12:00:00,5Z"`, `"2026-11-11T12:00:00+24:00"`, `"2026-11-11T12:00:00+01:60"`, `"1999-12-31T23:59:59Z"`,
		`"10000-01-01T00:00:00Z"`, `"2026-11-11T12:00:00Z\r\n"`, `"' OR 1=1"`,
	})
	return map[string][]string{
		"title":         title,
		"price":         slices.Concat(whole, []string{"", "1000000000001"}),
		"stock":         slices.Concat(whole, []string{"", "0", "100000001"}),
		"perBuyerLimit": slices.Concat(whole, []string{"0", "1001"}),
		"startAt":       moment,
		"endAt":         slices.Concat(moment, []string{`"2026-11-11T12:00:00.000Z"`, `"2026-11-11T11:59:59Z"`, `"2026-11-11T13:00:00+02:00"`}),
		"rate":          {"null", "true", "1", "[]", `"fast"`},
	}
}

// badRates are members of rate, with the field that must be named.
func badRates() [][2]string {
	return [][2]string{
		{`"x":1`, "rate.x"},
		{`"a.b":1`, "rate.a.b"},
		{`"algorithm":"x"`, "rate.algorithm"},
		{`"algorithm":1`, "rate.algorithm"},
		{`"algorithm":""`, "rate.algorithm"},
		{`"algorithm":"return redis.call('FLUSHALL')"`, "rate.algorithm"},
		{`"permitsPerSecond":0`, "rate.permitsPerSecond"},
		{`"permitsPerSecond":-1`, "rate.permitsPerSecond"},
		{`"permitsPerSecond":1e400`, "rate.permitsPerSecond"},
		{`"permitsPerSecond":1e7`, "rate.permitsPerSecond"},
		{`"permitsPerSecond":0.0000001`, "rate.permitsPerSecond"},
		{`"permitsPerSecond":"5"`, "rate.permitsPerSecond"},
		{`"permitsPerSecond":null`, "rate.permitsPerSecond"},
		{`"permitsPerSecond":5,"permitsPerSecond":5`, "rate.permitsPerSecond"},
		{`"maxBurstSeconds":-1`, "rate.maxBurstSeconds"},
		{`"maxBurstSeconds":3601`, "rate.maxBurstSeconds"},
		{`"maxBurstSeconds":[]`, "rate.maxBurstSeconds"},
		{`"maxWaitMillis":-1`, "rate.maxWaitMillis"},
		{`"maxWaitMillis":60001`, "rate.maxWaitMillis"},
		{`"maxWaitMillis":1.5`, "rate.maxWaitMillis"},
		{`"maxWaitMillis":"1000"`, "rate.maxWaitMillis"},
	}
}

func (t *table) newSales() {
	create := call{method: "POST", target: "/admin/sales", who: t.merchant}
	for field, values := range badSales() {
		for _, v := range values {
			create.body = NewSale(field, v)
			t.bad(field+" "+v, create, field)
		}
		if !strings.HasPrefix(field, "rate") && field != "perBuyerLimit" {
			create.body = strings.TrimSuffix(NewSale("title", `"x"`), "}") + `,"` + field + `":1}`
			t.bad(field+" doubled", create, field)
		}
	}
	for _, r := range badRates() {
		create.body = NewSale("rate", "{"+r[0]+"}")
		t.bad("rate "+r[0], create, r[1])
	}
	for _, field := range []string{"merchantId", "goodsId", "status", "epoch", "version", "stockDelta", "rate.algorithm", "Title"} {
		create.body = NewSale(field, "1") // what a caller may not set
		t.bad("mass assignment", create, field)
	}
	create.body = NewSale("rate", `{"algorithm":"reserve"}`)
	t.bad("rate in two places", join(create, "rate.algorithm=reserve"), "rate.algorithm")
}
