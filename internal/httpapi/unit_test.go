package httpapi

import (
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/httpapi/params"
	"flashsale.dev/seckill/internal/testing/must"
)

// TestAppendEnvelope_EqualsTheEncoder checks that the hand-written encoding of hot responses equals
// encoding/json's output.
func TestAppendEnvelope_EqualsTheEncoder(t *testing.T) {
	at := time.Date(2026, 11, 11, 20, 0, 0, 123_000_000, time.FixedZone("CST", 8*3600))
	for name, data := range map[string]any{
		"a path":       pathResponse{RandomPath: "0a1b", ExpiresAt: timestamp(at)},
		"an order":     queuedResponse{OrderSn: "06cqsm1r2ov3"},
		"a sale":       saleResponse{GoodsID: 42, Title: "\"<é\u2028>\\", StartAt: timestamp(at)},
		"units left":   errorData{"available", int64(0)},
		"orders":       errorData{"orderSns", []string{"a", "b"}},
		"broken UTF-8": errorData{"field", "a\xffb\n"},
		"a time":       errorData{"startAt", time.UnixMilli(1).UTC()},
	} {
		e := envelope{
			Code: 409, Reason: apierror.SoldOut, Message: "it's \"sold\" out\t\xff", Data: data,
			RequestID: "id-1",
		}
		own := string(must.Get(appendEnvelope(nil, e))(t, name))
		if d, ok := data.(errorData); ok {
			e.Data = map[string]any{d.Name: d.Value}
		}
		require.Equal(t,
			string(must.Get(json.Marshal(e, jsontext.AllowInvalidUTF8(true)))(t, name)),
			own, name)
	}
}

func TestLatencyWindow_P99CoversTheLastSeconds(t *testing.T) {
	l := newLatencyWindow()
	now := time.Unix(1_800_000_000, 0)
	require.Zero(t, l.p99(now))
	for range 99 {
		l.record(now, time.Millisecond)
	}
	l.record(now, time.Second)
	require.InEpsilon(t, 1000, l.p99(now).Microseconds(), 0.01)
	l.record(now.Add(5*time.Second), time.Second)
	require.InEpsilon(t, 1e6, l.p99(now.Add(5*time.Second)).Microseconds(), 0.01,
		"2 of 101 requests took a second")
	require.InEpsilon(t, 1e6, l.p99(now.Add(12*time.Second)).Microseconds(), 0.01,
		"the window holds one request")
	require.Zero(t, l.p99(now.Add(15*time.Second)))
	back := now.Add(-time.Hour)
	l.record(back, time.Second)
	require.Zero(t, l.p99(back.Add(latencySeconds*time.Second)), "the clock was set back")
}

func TestPage_CursorsRoundTrip(t *testing.T) {
	l := page([]int{1, 2, 3}, 2, func(i int) int { return i },
		func(int) string { return saleKey(77) })
	require.Equal(t, []int{1, 2}, l.Items)
	p := &request{Fields: params.New([]string{"cursor"}, nil)}
	require.NoError(t, p.Read(nil, httptest.NewRequest("GET", "/x?cursor="+*l.NextCursor, nil)))
	require.Equal(t, int64(77), p.cursorID())
	require.NoError(t, p.Err())
	require.Empty(t, p.cursor(orderCursor, isOrderSn), "another list refuses the cursor")
	require.Error(t, p.Err())
}

// TestEventTypes_KeepsNoUnknownWord checks that a list of many invented words costs no more than to
// find the first one: each word that is kept is compared with all after it.
func TestEventTypes_KeepsNoUnknownWord(t *testing.T) {
	r := httptest.NewRequest("POST", "/admin/webhooks?eventTypes=sale.closed,sale.closed,a,b,c",
		http.NoBody)
	p := params.New([]string{"eventTypes"}, []string{"eventTypes"})
	require.NoError(t, p.Read(httptest.NewRecorder(), r))
	types := eventTypes(p)
	require.Equal(t, apierror.BadRequest, apierror.ReasonOf(p.Err()))
	require.Equal(t, []event.Type{event.SaleClosed}, *types)
}

// TestCellText_IsNoFormulaWhereverACellBegins has texts of buyers. Many countries' spreadsheets end
// a cell at a semicolon, and not at a comma.
func TestCellText_IsNoFormulaWhereverACellBegins(t *testing.T) {
	for text, cell := range map[string]string{
		"":                       "",
		"Ada":                    "Ada",
		"a+b = c@d; e-f":         "a+b = c@d; e-f",
		"=1+1":                   "'=1+1",
		"+49 30":                 "'+49 30",
		"-1":                     "'-1",
		"@SUM(A1)":               "'@SUM(A1)",
		"\t=1":                   "'\t=1",
		` "=1"`:                  `' "=1"`,
		"x;=cmd|' /C calc'!A0;y": "x;'=cmd|' /C calc'!A0;y",
		`x; "@SUM(A1)"`:          `x;' "@SUM(A1)"`,
		"a;-1;+2":                "a;'-1;'+2",
		"＝1＋1":                   "'＝1＋1",
		"＠SUM(A1);－1":            "'＠SUM(A1);'－1",
		"0123":                   `="0123"`,
		"1234567890123456":       `="1234567890123456"`,
	} {
		require.Equal(t, cell, cellText(text), text)
	}
}

// TestWarn_FrequentMessageHidesNoOther has strangers fail to sign in all the time.
func TestWarn_FrequentMessageHidesNoOther(t *testing.T) {
	var log strings.Builder
	a := newAPI(Deps{Log: slog.New(slog.NewTextHandler(&log, nil))})
	for range 3 {
		a.warn(t.Context(), "sign-in failed")
	}
	a.warn(t.Context(), "unavailable")
	require.Contains(t, log.String(), "unavailable")
}

// TestThrottle_AllowsOneEventPerSecond also checks that the next event reports how many the
// throttle held back.
func TestThrottle_AllowsOneEventPerSecond(t *testing.T) {
	var w throttle
	start := time.Unix(1000, 0)
	for i, c := range []struct {
		after time.Duration
		held  int64
		ok    bool
	}{
		{0, 0, true},
		{0, 0, false},
		{999 * time.Millisecond, 0, false},
		{time.Second, 2, true},
		{time.Hour, 0, true},
		{time.Minute, 0, true}, // the clock was set back
		{time.Minute, 0, false},
	} {
		held, ok := w.allow(start.Add(c.after))
		require.Equal(t, c.ok, ok, i)
		require.Equal(t, c.held, held, i)
	}
}

// TestStreams_AreBounded checks the stream limits of a node and of a user. A stream that ends frees
// its place.
func TestStreams_AreBounded(t *testing.T) {
	s := newStreams(30 * streamMemory)
	for range maxStreamsOfUser {
		require.NoError(t, s.acquire("1"))
	}
	require.Equal(t, apierror.RateLimited, apierror.ReasonOf(s.acquire("1")))
	require.NoError(t, s.acquire("2"), "another user has a limit of its own")
	s.release("1")
	require.NoError(t, s.acquire("1"))
	for user := 3; s.all < 30; user++ {
		require.NoError(t, s.acquire(fmt.Sprint(user)))
	}
	require.Equal(t, apierror.Unavailable, apierror.ReasonOf(s.acquire("1")),
		"a full node refuses every user")
	require.Equal(t, apierror.Unavailable, apierror.ReasonOf(s.acquire("1e6")))
	s.release("3")
	require.NoError(t, s.acquire("1e6"))
	for user := range s.byUser {
		for s.byUser[user] > 0 {
			s.release(user)
		}
	}
	require.Zero(t, s.all)
	require.Empty(t, s.byUser, "users without a stream keep no entry")

	all := newStreams(math.MaxInt64)
	require.Equal(t, maxStreamsOfNode, all.max, "without a memory limit")
}
