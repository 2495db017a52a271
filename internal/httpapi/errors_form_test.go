package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCreateSale_NamesEveryBadField checks that one answer names each wrong field once: those of a
// wrong type, those that are missing and those out of their bounds.
func TestCreateSale_NamesEveryBadField(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	r := h.want(400, h.as(merchant(), "POST", "/admin/sales", `{"title": " ", "price": "free",
		"stock": 0, "startAt": "2097-11-11T12:00:00Z", "endAt": "2097-11-11T12:00:00Z",
		"perBuyerLimit": 1001, "imageUrl": "http://example.org", "rate": {"maxWaitMillis": -1}}`))
	type problems struct {
		Field  string
		Errors []struct{ Field, Message string }
	}
	data := dataOf[problems](h, r)
	var fields []string
	for _, e := range data.Errors {
		require.NotEmpty(t, e.Message)
		fields = append(fields, e.Field)
	}
	require.ElementsMatch(t, []string{
		"price", "perBuyerLimit", "rate.maxWaitMillis", "title", "stock", "endAt", "imageUrl",
	}, fields)
	require.Equal(t, fields[0], data.Field)
	goods := h.sell(nil)
	r = h.want(400, h.as(merchant(), "PATCH", "/admin/sales/"+goods,
		`{"stockDelta": 0, "perBuyerLimit": 0, "rate": {"permitsPerSecond": 0}}`))
	require.Len(t, dataOf[problems](h, r).Errors, 3)
}

// TestErrors_AreProblemsWhereTheCallerPrefersThem checks the form of RFC 9457, and who gets it.
func TestErrors_AreProblemsWhereTheCallerPrefersThem(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	for accept, want := range map[string]string{
		"":                              "application/json; charset=utf-8",
		"*/*":                           "application/json; charset=utf-8",
		"application/json":              "application/json; charset=utf-8",
		"application/problem+json":      "application/problem+json",
		"application/problem+json, */*": "application/problem+json",
		"application/json, application/problem+json":                        "application/json; charset=utf-8",
		"application/problem+json, application/json":                        "application/problem+json",
		"application/problem+json;q=0.5, */*":                               "application/json; charset=utf-8",
		"application/json;q=0.5, application/problem+json; charset=utf-8":   "application/problem+json",
		"*/*;q=0.1, application/json;q=0.6, Application/Problem+JSON;q=0.9": "application/problem+json",
		"application/problem+json;q=0":                                      "application/json; charset=utf-8",
		"application/problem+json;q=many":                                   "application/json; charset=utf-8",
		"application/problem+json;q=0.5, application/json":                  "application/json; charset=utf-8",
	} {
		r, _ := h.do("GET", "/sales/1", "", "Accept", accept)
		require.Equal(t, 404, r.StatusCode, accept)
		require.Equal(t, want, r.Header.Get("Content-Type"), accept)
	}
	r, body := h.do("GET", "/sales/x", "", "Accept", "application/problem+json")
	var p map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &p))
	require.Equal(t, r.Header.Get("X-Request-Id"), p["requestId"])
	delete(p, "requestId")
	const wrong = "must be a decimal integer of 1 to 2^63-1"
	require.Equal(t, map[string]any{
		"type": "about:blank", "title": "Bad Request", "status": 400.0, "code": 400.0,
		"reason": "BAD_REQUEST", "detail": "goodsId: " + wrong, "data": map[string]any{
			"field":  "goodsId",
			"errors": []any{map[string]any{"field": "goodsId", "message": wrong}},
		},
	}, p)
	r, body = h.do("GET", "/sales", "", "Accept", "application/problem+json")
	require.Equal(t, http.StatusOK, r.StatusCode)
	require.Contains(t, body, `"reason":"OK"`)
}
