package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/httpapi/params"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/testing/must"
)

func saleFields() []string {
	return (&api{}).fieldsOf("/admin/sales", http.MethodPost)
}

// fieldsOf returns the fields that a route reads.
func (a *api) fieldsOf(path, method string) []string {
	for _, r := range a.routes() {
		if r.path == path && r.methods == method {
			return r.fields
		}
	}
	return nil
}

func readFields(query, contentType, body string, fields []string) (*request, error) {
	r := httptest.NewRequest(http.MethodPost, "/x", strings.NewReader(body))
	r.URL.RawQuery = query
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	p := params.New(fields)
	p.AddPath("goodsId", "1")
	return &request{Fields: p}, p.Read(httptest.NewRecorder(), r)
}

// FuzzNewSale checks that the decoder of a new sale rejects invalid input with BAD_REQUEST. The
// error names its field in valid UTF-8.
func FuzzNewSale(f *testing.F) {
	types := []string{"", "application/json", "application/x-www-form-urlencoded"}
	f.Add("", uint8(1), `{"title":"x","price":1,"stock":1,"startAt":"2026-11-11T12:00:00Z",`+
		`"endAt":"2026-11-11T13:00:00Z","rate":{"permitsPerSecond":0.5}}`)
	f.Add("title=a%20b&price=1", uint8(2), "stock=1&rate.maxWaitMillis=5")
	f.Add("a=%ff;b", uint8(0), "{\"title\":\"\xff\"}")
	f.Add("", uint8(0), `{"rate":{"rate":{}},"rate":1}`)
	f.Fuzz(func(t *testing.T, query string, kind uint8, body string) {
		p, err := readFields(query, types[int(kind)%len(types)], body, saleFields())
		if err == nil {
			sale := newSale(p.Fields)
			p.limit()
			if err = p.Err(); err == nil {
				err = sale.Validate()
			}
		}
		if err != nil {
			e, ok := err.(*seckill.Error) //nolint:errorlint // the decoder promises this type
			require.True(t, ok, "%v", err)
			require.Equal(t, seckill.BadRequest, e.Reason)
			require.NotEmpty(t, e.Field)
			require.True(t, utf8.ValidString(e.Field))
		}
	})
}

func TestPage_CursorsRoundTrip(t *testing.T) {
	l := page([]int{1, 2, 3}, 2, func(i int) int { return i },
		func(int) string { return saleKey(77) })
	require.Equal(t, []int{1, 2}, l.Items)
	p := must.Get(readFields("cursor="+*l.NextCursor, "", "", []string{"cursor"}))(t)
	require.Equal(t, int64(77), p.cursorID())
	require.NoError(t, p.Err())
	require.Empty(t, p.cursor(orderCursor, isOrderSn), "another list refuses the cursor")
	require.Error(t, p.Err())
}

func TestRetryAfter_RoundsUp(t *testing.T) {
	require.Equal(t, "1", retryAfter(0))
	require.Equal(t, "1", retryAfter(1e9))
	require.Equal(t, "2", retryAfter(1e9+1))
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
	}{{0, 0, true}, {
		0, 0, false,
	}, {999 * time.Millisecond, 0, false}, {time.Second, 2, true}, {time.Hour, 0, true}} {
		held, ok := w.allow(start.Add(c.after))
		require.Equal(t, c.ok, ok, i)
		require.Equal(t, c.held, held, i)
	}
}
