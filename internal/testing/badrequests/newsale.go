package badrequests

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// NewSale returns the JSON of a valid new sale with one field set to a JSON value; "" omits the
// field.
func NewSale(name, value string) string {
	fields := map[string]string{
		"title": `"A phone"`, "price": "199900", "stock": "10",
		"startAt": `"2026-11-11T12:00:00.000Z"`, "endAt": `"2099-11-11T14:00:00+02:00"`,
	}
	fields[name] = value
	var members []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if fields[name] != "" {
			members = append(members, fmt.Sprintf("%q:%s", name, fields[name]))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// earlyEnds returns well-formed ends at or before NewSale's start. A change may contain them,
// because it may also move the start.
func earlyEnds() []string {
	return []string{
		`"2026-11-11T12:00:00.000Z"`, `"2026-11-11T11:59:59Z"`, `"2026-11-11T13:00:00+02:00"`,
	}
}

// badSales returns the invalid values of each field of a new sale; "" omits the field.
func badSales() map[string][]string {
	wrong := []string{"null", "true", "[]", "{}"}
	whole := slices.Concat(wrong, []string{
		"-1", "1.5", "1.0", "1e2", "1e20", "9223372036854775808", `"1"`, `"x"`, "-0",
	})
	title := slices.Concat(wrong, []string{
		"", "1", `""`, `"   "`, `"` + strings.Repeat("é", 121) + `"`, `"a\r\nb"`, `"a\u0000"`,
		`"\u001b[2J"`, `"\ud800"`, "\"\xff\"",
	})
	moment := slices.Concat(wrong, []string{
		"", "0", "1794398400", `""`, `"now"`, `"2026-11-11"`, `"2026-11-11T12:00:00"`,
		`"2026-11-11 12:00:00Z"`, `"2026-13-11T12:00:00Z"`, `"2026-02-30T12:00:00Z"`,
		`"2026-11-11T25:00:00Z"`, `"2026-11-11T1:00:00Z"`, `"2026-11-11T12:00:00,5Z"`,
		`"2026-11-11T12:00:00+24:00"`, `"2026-11-11T12:00:00+01:60"`, `"1999-12-31T23:59:59Z"`,
		`"10000-01-01T00:00:00Z"`, `"2026-11-11T12:00:00Z\r\n"`, `"' OR 1=1"`,
	})
	return map[string][]string{
		"title":         title,
		"price":         slices.Concat(whole, []string{"", "1000000000001"}),
		"stock":         slices.Concat(whole, []string{"", "0", "100000001"}),
		"perBuyerLimit": slices.Concat(whole, []string{"0", "1001"}),
		"startAt":       moment,
		"endAt":         slices.Concat(moment, earlyEnds()),
		"rate":          {"null", "true", "1", "[]", `"fast"`},
		"description":   slices.Concat(wrong, []string{"1", text(4001), `"\u0007"`}),
		"imageUrl": slices.Concat(wrong, []string{
			"1", `"x"`, `"http://example.com/a.png"`, `"https://"`, `"javascript:alert(1)"`,
			`"https://user:secret@example.com/a.png"`, `"https://example.com/` + text(1000)[1:],
		}),
		"externalId": slices.Concat(wrong, []string{"1", text(65), `"a b"`, `"é"`}),
		"currency":   slices.Concat(wrong, []string{"1", `"EURO"`, `"eur"`, `"ZZZ"`, `"E1R"`}),
		"admission":  slices.Concat(wrong, []string{"1", `""`, `"Rate"`, `"both"`}),
		"accessCode": slices.Concat(wrong, []string{"1", `""`, `"Shared"`, `"both"`}),
		"metadata": {
			"null", "true", "1", "[]", `"x"`, `{"":"x"}`, `{"a b":"x"}`, `{"` + text(41)[1:] + `:"x"}`,
			pairs(21),
		},
	}
}

// text returns the JSON of a string with n characters.
func text(n int) string { return `"` + strings.Repeat("x", n) + `"` }

// pairs returns the JSON of an object with n strings.
func pairs(n int) string {
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf(`"k%d":"x"`, i))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// badPairs returns invalid pairs of metadata, by the field that the response must name.
func badPairs() map[string]string {
	return map[string]string{
		"metadata.a":   `{"a":1}`,
		"metadata.b":   `{"b":null}`,
		"metadata.c":   `{"c":` + text(501) + `}`,
		"metadata.d":   `{"d":"\u0000"}`,
		"metadata.e":   `{"e":{}}`,
		"metadata.f.g": `{"f.g":"x"}`,
	}
}

// badRates returns invalid members of rate by the field that the response must name.
func badRates() map[string][]string {
	return map[string][]string{
		"x": {`"x":1`}, "a.b": {`"a.b":1`},
		"algorithm": members("algorithm", `"x"`, "1", `""`, `"return redis.call('FLUSHALL')"`),
		"permitsPerSecond": members("permitsPerSecond", "0", "-1", "1e400", "1e7", "0.0000001",
			`"5"`, "null", `5,"permitsPerSecond":5`),
		"maxBurstSeconds": members("maxBurstSeconds", "-1", "3601", "[]"),
		"maxWaitMillis":   members("maxWaitMillis", "-1", "60001", "1.5", `"1000"`),
	}
}

// members returns a JSON member for each value, all with the same name.
func members(name string, values ...string) (all []string) {
	for _, v := range values {
		all = append(all, `"`+name+`":`+v)
	}
	return all
}

// rates adds requests with a bad rate. body puts the rate into a request's body.
func (t *table) rates(what string, c call, body func(rate string) string) {
	for field, rates := range badRates() {
		for _, rate := range rates {
			c.body = body("{" + rate + "}")
			t.bad(what+" "+rate, c, "rate."+field)
		}
	}
}

func (t *table) newSales() {
	create := post("/admin/sales", t.merchant)
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
	for field, value := range badPairs() {
		create.body = NewSale("metadata", value)
		t.bad(field+" "+value, create, field)
	}
	t.rates("rate", create, func(rate string) string { return NewSale("rate", rate) })
	for _, field := range []string{ // callers may not set these fields
		"merchantId", "goodsId", "status", "epoch", "version", "stockDelta", "rate.algorithm",
		"Title",
	} {
		create.body = NewSale(field, "1")
		t.bad("mass assignment", create, field)
	}
	create.body = NewSale("rate", `{"algorithm":"reserve"}`)
	t.bad("rate in two places", join(create, "rate.algorithm=reserve"), "rate.algorithm")
}
