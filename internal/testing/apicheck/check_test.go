package apicheck

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

// roundTrip returns a documented round trip of POST /{path}/decrStock with the given change.
func roundTrip(change func(x *RoundTrip)) RoundTrip {
	x := RoundTrip{
		Method: "POST", URL: &url.URL{Path: "/0f343b0931126a20f133d67c2b018a3b/decrStock"},
		RequestHeader: http.Header{"Content-Type": {"application/json"}},
		RequestBody:   []byte(`{"goodsId":"248171519795200123","decrStock":1}`), Status: 202,
		ResponseHeader: http.Header{
			"Content-Type": {"application/json; charset=utf-8"},
			"X-Request-Id": {"a"},
		},
		ResponseBody: []byte(`{"code":202,"reason":"QUEUED","message":"queued","data":{"orderSn":"06cq"},"requestId":"a"}`),
	}
	change(&x)
	return x
}

// swap returns a change that replaces text in the response.
func swap(old, other string) func(x *RoundTrip) {
	return func(x *RoundTrip) {
		x.ResponseBody = []byte(strings.Replace(string(x.ResponseBody), old, other, 1))
	}
}

// withHeader returns a change that sets a header of the response.
func withHeader(name, value string) func(x *RoundTrip) {
	return func(x *RoundTrip) { x.ResponseHeader.Set(name, value) }
}

func asked(method, target, sent string) func(x *RoundTrip) {
	return func(x *RoundTrip) {
		u, _ := url.Parse(target)
		x.Method, x.URL, x.RequestBody = method, u, []byte(sent)
	}
}

// answered returns a change to a refusal in the API's common JSON shape.
func answered(status int, reason, data string, header ...string) func(x *RoundTrip) {
	return func(x *RoundTrip) {
		x.Status = status
		x.ResponseBody = []byte(`{"code":` + strconv.Itoa(status) + `,"reason":"` + reason +
			`","message":"m","data":` + data + `,"requestId":"a"}`)
		for i := 0; i < len(header); i += 2 {
			x.ResponseHeader.Set(header[i], header[i+1])
		}
	}
}

// problem returns a change to a refusal in the form of RFC 9457, with more members.
func problem(more string) func(x *RoundTrip) {
	return func(x *RoundTrip) {
		x.Status = http.StatusConflict
		x.ResponseHeader.Set("Content-Type", "application/problem+json")
		x.ResponseBody = []byte(`{"type":"about:blank","title":"Conflict","status":409,"detail":"m",` +
			`"code":409,"reason":"SOLD_OUT","data":{},"requestId":"a"` + more + `}`)
	}
}

func TestCheck_AcceptsDocumentedRoundTrips(t *testing.T) {
	d := must.Get(Load())(t)
	for name, change := range map[string]func(x *RoundTrip){
		"as it is":        func(*RoundTrip) {},
		"a number":        asked("POST", "/0f/decrStock", `{"goodsId":7}`),
		"no content type": func(x *RoundTrip) { x.RequestHeader = nil },
		"in the query":    asked("POST", "/0f/decrStock?goodsId=7&decrStock=2", ""),
		"refused as malformed": func(x *RoundTrip) {
			answered(400, "BAD_REQUEST", `{"field":"x","errors":[{"field":"x","message":"m"}]}`)(x)
			x.RequestBody = []byte("{")
		},
		"sold out":          answered(409, "SOLD_OUT", `{"available":0}`),
		"a problem":         problem(""),
		"not cached":        withHeader("Cache-Control", "no-store"),
		"limited by a rule": answered(429, "RATE_LIMITED", `{}`, "Retry-After", "2"),
		"no such call": func(x *RoundTrip) {
			asked("GET", "/x/y/z", "")(x)
			answered(404, "NOT_FOUND", `{}`)(x)
		},
	} {
		require.NoError(t, d.Check(roundTrip(change)), name)
	}
}

// TestCheck_FindsUndocumentedRoundTrips changes one detail at a time. Check must report each
// change.
func TestCheck_FindsUndocumentedRoundTrips(t *testing.T) {
	d := must.Get(Load())(t)
	for name, change := range map[string]func(x *RoundTrip){
		"a field too many":           swap(`"requestId"`, `"more":1,"requestId"`),
		"a field too few":            swap(`"message":"queued",`, ``),
		"a problem's field too many": problem(`,"x":1`),
		"data too many":              swap(`"orderSn":"06cq"`, `"orderSn":"06cq","x":1`),
		"data too few":               swap(`"orderSn":"06cq"`, ``),
		"a wrong pattern":            swap(`06cq`, `06_q`),
		"a wrong type":               swap(`"06cq"`, `6`),
		"a wrong reason":             answered(404, "FORBIDDEN", `{}`),
		"a reason never heard of":    answered(409, "WHATEVER", `{}`),
		"a status that is not there": answered(418, "CONFLICT", `{}`),
		"data of a refusal": answered(401, "UNAUTHENTICATED", `{"secret":1}`,
			"WWW-Authenticate", "Bearer"),
		"no Retry-After":      answered(429, "RATE_LIMITED", `{}`),
		"a Retry-After of 0":  answered(429, "RATE_LIMITED", `{}`, "Retry-After", "0"),
		"no WWW-Authenticate": answered(401, "UNAUTHENTICATED", `{}`),
		"no X-Request-ID":     func(x *RoundTrip) { x.ResponseHeader.Del("X-Request-Id") },
		"another media type": func(x *RoundTrip) {
			x.ResponseHeader.Set("Content-Type", "text/html")
		},
		"a header":                  withHeader("X-Other", "1"),
		"may be cached":             withHeader("Cache-Control", "no-cache"),
		"taken, with a wrong field": asked("POST", "/0f/decrStock", `{"goodsId":7,"x":1}`),
		"taken, with a wrong query": asked("POST", "/0f/decrStock?goodsId=7&x=1", ""),
		"taken, with a wrong type":  asked("POST", "/0f/decrStock", `{"goodsId":true}`),
		"taken, out of range": asked("POST", "/0f/decrStock",
			`{"goodsId":7,"decrStock":1001}`),
		"taken, in the query, too": asked("POST", "/0f/decrStock?goodsId=7&decrStock=1001", ""),
		"taken, and no JSON":       asked("POST", "/0f/decrStock", `{`),
		"taken, and no such call":  asked("POST", "/x/y/z", `{}`),
		"an unknown call, other data": func(x *RoundTrip) {
			asked("GET", "/x/y/z", "")(x)
			answered(404, "NOT_FOUND", `{"x":1}`)(x)
		},
	} {
		require.Error(t, d.Check(roundTrip(change)), name)
	}
}
