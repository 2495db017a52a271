package httpapi

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/seckill"
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
		"units left":   errorData{"available": int64(0)},
		"orders":       errorData{"orderSns": []string{"a", "b"}},
		"broken UTF-8": errorData{"field": "a\xffb\n"},
		"nothing":      errorData{},
	} {
		e := envelope{
			Code: 409, Reason: seckill.SoldOut, Message: "it's \"sold\" out\t\xff", Data: data,
			RequestID: "id-1",
		}
		require.Equal(t,
			string(must.Get(json.Marshal(e, jsontext.AllowInvalidUTF8(true)))(t, name)),
			string(must.Get(appendEnvelope(nil, e))(t, name)), name)
	}
}

func TestErrorData_IsSorted(t *testing.T) {
	got := must.Get(appendValue(nil,
		errorData{"startAt": time.UnixMilli(1).UTC(), "available": int64(7), "b": nil}))(t)
	require.JSONEq(t, `{"available":7,"b":{},"startAt":"1970-01-01T00:00:00.001Z"}`, string(got))
	require.Equal(t, `{"available":7,"b":{},"startAt":"1970-01-01T00:00:00.001Z"}`, string(got))
}
