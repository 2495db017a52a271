package edge

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
)

// long is a site that caches refusals for as long as the test runs.
func long(addr string) site {
	return open(addr).with("settings.lua",
		strings.Replace(noShared, "SOLD_OUT = 0.5, NOT_STARTED = 1, ENDED = 1",
			"SOLD_OUT = 600, NOT_STARTED = 600, ENDED = 600", 1))
}

// TestEdge_RepeatsKnownRefusals checks that the edge answers with a refusal of the API without
// asking the API again.
func TestEdge_RepeatsKnownRefusals(t *testing.T) {
	for reason, data := range map[string]string{
		"SOLD_OUT": `{"available":0}`, "ENDED": `{}`,
		"NOT_STARTED": `{"startAt":"` +
			time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000Z") + `"}`,
	} {
		t.Run(reason, func(t *testing.T) {
			api := newAPI(t)
			e := start(t, long(api.addr()))
			api.says(saying(409, reason, data))
			first := e.path("1", buyerHeaders(t, 1)...)
			require.Equal(t, "ofTheAPI", first.RequestID)
			for i := range 20 {
				a := e.path("1", append(buyerHeaders(t, int64(i+2)), "X-Request-ID", "mine")...)
				require.Equal(t, []any{http.StatusConflict, 409, reason, "of the API", "mine"},
					[]any{a.Status, a.Code, a.Reason, a.Message, a.RequestID})
				require.JSONEq(t, data, string(a.Data))
				shaped(t, a)
			}
			require.EqualValues(t, 1, api.heard.Load(), "the API was asked once")
			require.Equal(t, reason, e.path("1", session(t, 1)...).Reason)
			require.EqualValues(t, 1, api.heard.Load(), "nor for a buyer of the pages")
			e.path("2", buyerHeaders(t, 1)...)
			require.EqualValues(t, 2, api.heard.Load(), "the refusal is of one goods only")
		})
	}
}

// TestKnownRefusal_OtherRequestsArePassedOn checks that the edge forwards requests to which the API
// gives another answer.
func TestKnownRefusal_OtherRequestsArePassedOn(t *testing.T) {
	api := newAPI(t)
	e := start(t, long(api.addr()))
	api.says(saying(409, "SOLD_OUT", `{"available":0}`))
	e.path("1", buyerHeaders(t, 1)...)
	expired := buyerHeaders(t, 1)
	head, _, _ := strings.Cut(expired[1], ".")
	// {"sub":"1","role":"buyer","exp":1000}
	expired[1] = head + ".eyJzdWIiOiIxIiwicm9sZSI6ImJ1eWVyIiwiZXhwIjoxMDAwfQ.c2ln"
	heard := api.heard.Load()
	for i, c := range []struct {
		method, query string
		header        []string
	}{
		{"POST", "", nil},
		{"POST", "", []string{"Authorization", "Bearer nonsense"}},
		{"POST", "", expired},
		{"POST", "", bearer(t, 1, seckill.Merchant)},
		{"POST", "&more=1", buyerHeaders(t, 1)},
		{"DELETE", "", buyerHeaders(t, 1)},
	} {
		a := e.ask(c.method, "/randomPath?goodsId=1"+c.query, c.header...)
		require.Equal(t, "ofTheAPI", a.RequestID, i)
		require.EqualValues(t, heard+int64(i)+1, api.heard.Load(), i)
	}
}

// TestKnownRefusal_OnlyWhatHoldsForEverybodyIsLearnt checks that the edge caches only answers that
// hold for every buyer.
func TestKnownRefusal_OnlyWhatHoldsForEverybodyIsLearnt(t *testing.T) {
	soon := time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	for name, say := range map[string]http.HandlerFunc{
		"another refusal": saying(409, "LIMIT_REACHED", `{"orderSns":["1"]}`),
		"another shape": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(409)
			_, _ = w.Write([]byte(`{"reason":"SOLD_OUT"}`))
		},
		"starts now":           saying(409, "NOT_STARTED", `{"startAt":"`+soon+`"}`),
		"a start of no format": saying(409, "NOT_STARTED", `{"startAt":"tomorrow"}`),
		"a start that is none": saying(409, "NOT_STARTED", `{}`),
		"too long to be read": saying(409, "SOLD_OUT",
			`{"available":0,"x":"`+strings.Repeat("x", 2000)+`"}`),
		"a yes":                 saying(200, "SOLD_OUT", `{"available":0}`),
		"text inside a message": saying(409, `CONFLICT","reason":"SOLD_OUT`, `{}`),
	} {
		t.Run(name, func(t *testing.T) {
			api := newAPI(t)
			e := start(t, long(api.addr()))
			api.says(say)
			for i := range 3 {
				e.path("1", buyerHeaders(t, 1)...)
				require.EqualValues(t, i+1, api.heard.Load())
			}
		})
	}
	t.Run("another route", func(t *testing.T) {
		api := newAPI(t)
		e := start(t, long(api.addr()))
		api.says(saying(409, "SOLD_OUT", `{"available":2}`))
		e.ask(http.MethodPost, "/"+strings.Repeat("0a", 16)+"/decrStock?goodsId=1&decrStock=3",
			buyerHeaders(t, 1)...)
		e.path("1", buyerHeaders(t, 1)...)
		require.EqualValues(t, 2, api.heard.Load())
	})
}

// TestKnownRefusal_SaleOpensOnTime checks that the edge refuses requests until startAt, and
// forwards all of them from then on.
func TestKnownRefusal_SaleOpensOnTime(t *testing.T) {
	api := newAPI(t)
	e := start(t, long(api.addr()))
	opens := time.Now().Add(time.Second).Truncate(time.Millisecond)
	api.says(saying(409, "NOT_STARTED",
		`{"startAt":"`+opens.UTC().Format("2006-01-02T15:04:05.000Z")+`"}`))
	e.path("1", buyerHeaders(t, 1)...)
	e.path("1", buyerHeaders(t, 1)...)
	api.says(saying(200, "OK", `{}`))
	time.Sleep(time.Until(opens.Add(2 * time.Millisecond)))
	require.Equal(t, "OK", e.path("1", buyerHeaders(t, 1)...).Reason)
}
